#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "base/networks.h"
#include "pg/connection.h"

namespace thalweg::daemon {

struct OperatorSession {
  const std::atomic<bool>* abandon;  // once it is set, whatever waits for the database is given up
  std::chrono::milliseconds lifetime{20'000};
  size_t answer_bytes_max = pg::kAnswerBytesMax;
};

// For what an operator asks for. He waits for the answer, on one of the control API's few threads: connecting, and
// waiting for a lock, take three seconds at most, and all of it no longer than the lifetime, even where the server or
// the network stands still.
base::Result<pg::Connection> open_for_operator(const base::Conninfo& conninfo, std::string application_name,
                                               OperatorSession session);

}  // namespace thalweg::daemon
