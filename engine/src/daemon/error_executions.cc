#include "daemon/error_executions.h"

#include <utility>

#include "base/log.h"
#include "daemon/destination_errors.h"

namespace thalweg::daemon {

namespace {

// Less than the control plane waits for an answer.
constexpr std::chrono::seconds kPatience{3};

}  // namespace

ErrorExecutions::~ErrorExecutions() {
  abandon();
  for (auto& [destination, execution] : executions_) {
    if (execution->thread.joinable()) execution->thread.join();
  }
}

base::Result<std::string_view> ErrorExecutions::execute(const std::string& destination,
                                                        const control::StreamDefinition& definition, int64_t error_id,
                                                        std::function<void()> done) {
  std::unique_lock lock(mutex_);
  auto& execution = executions_[destination];
  if (!execution) execution = std::make_unique<Execution>();
  if (execution->status.state == "RUNNING") {
    return base::fail(base::ErrorCode::database_busy,
                      "Transaction " + std::to_string(execution->status.error_id) +
                          " of the error queue is being executed, with those that wait behind it");
  }
  if (execution->thread.joinable()) execution->thread.join();  // it has ended
  execution->status = {.error_id = error_id,
                       .state = "RUNNING",
                       .executed = 0,
                       .total = 1,
                       .started_at = clock_.unix_now(),
                       .finished_at = {},
                       .error = {}};
  Execution& running = *execution;
  running.thread = std::thread([this, &running, definition, error_id, done = std::move(done)] {
    const auto executed = execute_parked_error(definition, error_id,
                                               {.progress =
                                                    [&](uint64_t count, uint64_t total) {
                                                      const std::lock_guard progress_lock(mutex_);
                                                      running.status.executed = count;
                                                      running.status.total = total;
                                                    },
                                                .abandon = &abandoned_});
    if (!executed) base::log_error("error_execution_failed", executed.error(), {{"stream", definition.id}});
    done();
    const std::lock_guard end_lock(mutex_);
    running.status.state = executed ? "DONE" : "FAILED";
    running.status.finished_at = clock_.unix_now();
    if (!executed) running.status.error = executed.error();
    ended_.notify_all();
  });
  ended_.wait_for(lock, kPatience, [&] { return running.status.state != "RUNNING"; });
  if (running.status.state == "FAILED") return std::unexpected(*running.status.error);
  return running.status.state;
}

std::optional<control::ErrorExecutionStatus> ErrorExecutions::status(const std::string& destination) const {
  const std::lock_guard lock(mutex_);
  const auto found = executions_.find(destination);
  if (found == executions_.end()) return std::nullopt;
  return found->second->status;
}

}  // namespace thalweg::daemon
