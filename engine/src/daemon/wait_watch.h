#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/networks.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "pg/session_board.h"

namespace thalweg::daemon {

// Finds out behind whom a stream's start, or its removal, waits at a server. Thread-safe. A thread of its own asks, in
// sessions of its own, once a statement has run for seconds.
class WaitWatch {
 public:
  // The board and the clock outlive it.
  WaitWatch(const pg::SessionBoard& board, const base::Clock& clock);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  // The statements that wait for a lock now, at the databases of `definition`.
  std::vector<control::WaitStatus> waits(const control::StreamDefinition& definition) const;

 private:
  struct Wait {
    pg::SessionBoard::Session session;
    control::WaitStatus status;
  };
  // A statement that has run for long, and its blockers at the last query.
  struct Statement {
    pg::SessionBoard::Session session;
    std::vector<pg::Blocker> blockers;
    std::chrono::steady_clock::time_point next_look;
  };
  void run(const std::stop_token& stop);
  void look();
  void ask(Statement& statement) const;

  const pg::SessionBoard& board_;
  const base::Clock& clock_;
  std::atomic<bool> abandon_{false};  // Writer: the destructor. Readers: the thread's connections

  std::vector<Statement> statements_;  // the thread's

  mutable std::mutex mutex_;
  std::vector<Wait> found_;  // guarded by it

  std::jthread thread_;  // last: it uses everything above
};

}  // namespace thalweg::daemon
