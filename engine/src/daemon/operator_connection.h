#pragma once

#include <atomic>
#include <string>

#include "base/error.h"
#include "base/networks.h"
#include "pg/connection.h"

namespace thalweg::daemon {

// For what an operator asks for. He waits for the answer, on one of the control API's few threads: connecting, and
// waiting for a lock, take three seconds at most. Once `abandon` is set, whatever waits for the database is given up.
base::Result<pg::Connection> open_for_operator(const base::Conninfo& conninfo, std::string application_name,
                                               const std::atomic<bool>& abandon);

}  // namespace thalweg::daemon
