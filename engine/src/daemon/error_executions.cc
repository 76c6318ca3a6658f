#include "daemon/error_executions.h"

#include <utility>

#include "base/log.h"
#include "daemon/destination_errors.h"

namespace thalweg::daemon {

using control::ExecutionState;

namespace {

// Less than the control plane waits for an answer.
constexpr std::chrono::seconds kPatience{3};

std::string is_running(const telemetry::ParkedChoice& choice) {
  if (choice.id) {
    return "Transaction " + std::to_string(*choice.id) +
           " of the error queue is being executed, with those that wait behind it";
  }
  if (!choice.cause.empty()) return "Transactions of the error queue with one cause are being executed";
  return "All transactions of the error queue are being executed";
}

}  // namespace

ErrorExecutions::~ErrorExecutions() {
  for (auto& [destination, executor] : executors_) {
    if (executor.thread.joinable()) executor.thread.join();
  }
}

base::Result<ExecutionState> ErrorExecutions::execute(const std::string& destination, const control::Delivery& delivery,
                                                      const telemetry::ParkedChoice& choice, std::function<void()> done,
                                                      std::function<void()> hold) {
  std::unique_lock lock(mutex_);
  Executor& executor = executors_[current_id_locked(destination)];
  if (executor.last && executor.last->status.state == ExecutionState::running) {
    return base::fail(base::ErrorCode::database_busy, is_running(executor.last->status.choice));
  }
  if (executor.thread.joinable()) executor.thread.join();  // it has ended
  const auto mine = std::make_shared<Execution>(Execution{.status = {.choice = choice,
                                                                     .state = ExecutionState::running,
                                                                     .executed = 0,
                                                                     .total = 1,
                                                                     .failed = 0,
                                                                     .failures = {},
                                                                     .started_at = clock_.unix_now(),
                                                                     .finished_at = {},
                                                                     .error = {}}});
  executor.thread = std::thread([this, &executor, before = executor.last, mine, delivery, choice,
                                 done = std::move(done), hold = std::move(hold)] {
    const auto executed = execute_parked_error(delivery, choice,
                                               {.progress =
                                                    [&](uint64_t count, uint64_t total) {
                                                      const std::lock_guard progress_lock(mutex_);
                                                      mine->has_begun = true;
                                                      mine->status.executed = count;
                                                      mine->status.total = total;
                                                    },
                                                .failed =
                                                    [&](int64_t id, const base::Error& why) {
                                                      const std::lock_guard failed_lock(mutex_);
                                                      auto& status = mine->status;
                                                      ++status.failed;
                                                      if (status.failures.size() >= control::kFailuresShownMax) return;
                                                      status.failures.push_back({.error_id = id, .error = why});
                                                    },
                                                .left_out =
                                                    [&](int64_t id) {
                                                      const std::lock_guard left_out_lock(mutex_);
                                                      auto& status = mine->status;
                                                      ++status.left_out;
                                                      if (status.left_out_ids.size() >= control::kFailuresShownMax)
                                                        return;
                                                      status.left_out_ids.push_back(id);
                                                    },
                                                .abandon = &abandon_,
                                                .hold_apply = hold,
                                                .go_on = done});
    if (!executed) base::log_error("error_execution_failed", executed.error(), {{"stream", delivery.stream.id}});
    done();
    const std::lock_guard end_lock(mutex_);
    mine->status.state = executed ? ExecutionState::done : ExecutionState::failed;
    mine->status.finished_at = clock_.unix_now();
    if (!executed) mine->status.error = executed.error();
    // The answer says why it was refused; the last that did begin is still the last.
    if (!executed && !mine->has_begun && mine->is_awaited) executor.last = before;
    ended_.notify_all();
  });
  executor.last = mine;  // not before the thread is there: making it may fail
  ended_.wait_for(lock, kPatience, [&] { return mine->status.state != ExecutionState::running; });
  mine->is_awaited = false;
  if (mine->status.state == ExecutionState::failed) return std::unexpected(*mine->status.error);
  return mine->status.state;
}

void ErrorExecutions::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  renamed_[from] = to;
  auto executor = executors_.extract(from);
  if (executor.empty()) return;
  executor.key() = to;
  executors_.insert(std::move(executor));
}

std::string ErrorExecutions::current_id(const std::string& destination) const {
  const std::lock_guard lock(mutex_);
  return current_id_locked(destination);
}

const std::string& ErrorExecutions::current_id_locked(const std::string& destination) const {
  const auto found = renamed_.find(destination);
  return found == renamed_.end() ? destination : found->second;
}

std::optional<control::ErrorExecutionStatus> ErrorExecutions::status(const std::string& destination) const {
  const std::lock_guard lock(mutex_);
  const auto found = executors_.find(destination);
  if (found == executors_.end() || !found->second.last) return std::nullopt;
  return found->second.last->status;
}

}  // namespace thalweg::daemon
