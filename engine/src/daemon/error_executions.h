#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"

// Executions of parked transactions, which may be many thousands: each goes on, on a thread of its own, when whoever
// asked for it waits no longer.

namespace thalweg::daemon {

// Thread-safe: `mutex_` guards everything.
class ErrorExecutions {
 public:
  // Setting `abandon` ends executions that run within seconds, before their next transaction. It is set before this
  // ends.
  ErrorExecutions(const base::Clock& clock, const std::atomic<bool>& abandon) : clock_(clock), abandon_(abandon) {}
  ~ErrorExecutions();  // joins
  ErrorExecutions(const ErrorExecutions&) = delete;
  ErrorExecutions& operator=(const ErrorExecutions&) = delete;

  // Begins, and waits for the end for as long as somebody wants to wait for an answer: done, running, or why it
  // failed. One at a time for each destination, else database_busy. Both are called on the thread that executes: `hold`
  // as ExecutionWatch::hold_apply, `done` as its go_on, and at the end, whatever that is.
  base::Result<control::ExecutionState> execute(const std::string& destination, const control::Delivery& delivery,
                                                const telemetry::ParkedChoice& choice, std::function<void()> done,
                                                std::function<void()> hold = {});
  // A destination has another id; who asked by the one that it had means it, too.
  void rename(const std::string& from, const std::string& to);
  std::string current_id(const std::string& destination) const;
  // The last one, also when it has ended; but none that was refused, before its first transaction, in the answer.
  std::optional<control::ErrorExecutionStatus> status(const std::string& destination) const;

 private:
  // Each call has its own: by the time that it hears of its end, another one may have begun.
  struct Execution {
    control::ErrorExecutionStatus status;
    bool has_begun = false;  // with its first transaction
    bool is_awaited = true;  // its end is the answer
  };
  struct Executor {
    std::shared_ptr<Execution> last;  // null: none yet
    std::thread thread;
  };

  const std::string& current_id_locked(const std::string& destination) const;

  const base::Clock& clock_;
  const std::atomic<bool>& abandon_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<std::string, std::string> renamed_;  // by the id that it had
  std::map<std::string, Executor> executors_;   // by destination; none is ever removed
};

}  // namespace thalweg::daemon
