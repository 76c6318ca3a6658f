#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/networks.h"
#include "pg/connection.h"
#include "pg/session_board.h"

namespace thalweg::daemon {

// Context of a supervisor's work in databases while a stream starts or goes: a stop does not wait for the work, and
// others see what it waits for. Both objects outlive the sessions. Null: a stop waits, and nobody sees it.
struct DatabaseWork {
  const std::atomic<bool>* stop = nullptr;
  pg::SessionBoard* board = nullptr;

  pg::ConnectOptions session(std::string application_name) const {
    pg::ConnectOptions options;
    options.application_name = std::move(application_name);
    options.abandon = stop;
    options.board = board;
    return options;
  }
  // Before anything is read there: what an earlier try has left behind would change it afterwards.
  base::Result<void> end_given_up(const base::Conninfo& conninfo) const {
    return board == nullptr ? base::Result<void>{} : board->end_given_up(conninfo);
  }
  // At once, where it can be: the next one who asks there makes sure of it.
  void try_to_end_given_up(const base::Conninfo& conninfo) const {
    if (auto ended = end_given_up(conninfo); !ended) base::log_error("given_up_goes_on", ended.error(), {});
  }
  bool is_given_up() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

}  // namespace thalweg::daemon
