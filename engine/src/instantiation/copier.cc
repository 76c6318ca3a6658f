#include "instantiation/copier.h"

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

namespace thalweg::instantiation {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);  // at the engine's wish to stop
constexpr auto kCancelAgain = std::chrono::milliseconds(200);
// Time that cancelled statements have to end. A server that has not ended them by then is taken to stand still.
constexpr auto kCancelPatience = std::chrono::seconds(5);

// Outcome that the workers of one run report to the thread that waits for them.
class Outcome {
 public:
  explicit Outcome(size_t workers) : running_(workers) {}

  const std::atomic<bool>& failed() const { return failed_; }
  void fail(base::Error error) {
    std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(error);
    failed_ = true;
  }
  void leave() {
    std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  bool all_left_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return running_ == 0; });
  }
  base::Result<void> result() {
    std::lock_guard lock(mutex_);
    if (first_) return std::unexpected(*first_);
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_;
  std::optional<base::Error> first_;
  std::atomic<bool> failed_{false};  // writers: any worker, and who waits; readers: all; nothing else depends on it
};

// False: it is a range that the worker's snapshot is too old for.
base::Result<bool> take(CopyWorker& worker, const WorkQueue::Turn& turn, const std::atomic<bool>& stop) {
  if (const auto* const range = std::get_if<RangeStep>(turn.step)) return worker.copy(*turn.table, *range, stop);
  THALWEG_TRY(worker.build(*turn.table, std::get<BuildStep>(*turn.step)));
  return true;
}

void work(CopyWorker& worker, WorkQueue& queue, Outcome& outcome) {
  while (const auto turn = queue.take()) {
    if (!std::holds_alternative<RangeStep>(*turn->step) && !queue.has_rows()) worker.close_source();
    auto done = take(worker, *turn, outcome.failed());
    if (!done) {
      if (done.error().table.empty()) done.error().table = turn->table->shape->name.quoted();
      outcome.fail(done.error());
      queue.end();
    }
    if (done.value_or(true)) {
      queue.done(*turn);
    } else {
      queue.postpone(*turn);
    }
  }
  outcome.leave();
}

}  // namespace

Copier::Copier(CopyOptions options, Progress& progress, const std::atomic<bool>& stop)
    : options_(std::move(options)), progress_(progress), stop_(stop) {
  for (int i = 0; i < options_.workers; ++i) workers_.emplace_back(options_, progress_, stop_, given_up_);
}

base::Result<void> Copier::each_worker(const std::function<base::Result<void>(CopyWorker&)>& open) {
  std::vector<std::future<base::Result<void>>> opening;
  for (CopyWorker& worker : workers_) opening.push_back(std::async(std::launch::async, [&] { return open(worker); }));
  for (auto& opened : opening) opened.wait();
  for (auto& opened : opening) THALWEG_TRY(opened.get());
  return {};
}

base::Result<void> Copier::open() {
  return each_worker([](CopyWorker& worker) { return worker.open_destination(); });
}

base::Result<void> Copier::open(const Snapshot& snapshot) {
  return each_worker([&](CopyWorker& worker) -> base::Result<void> {
    THALWEG_TRY(worker.open_source(snapshot));
    return worker.open_destination();
  });
}

pg::Connection& Copier::source() { return workers_.front().source(); }

base::Result<void> Copier::run(std::vector<TableWork> works) {
  if (stop_) return interrupted();
  if (works.empty()) return {};
  WorkQueue queue(std::move(works));
  Outcome outcome(workers_.size());
  std::vector<pg::Connection::Canceller> cancellers;
  for (const CopyWorker& worker : workers_) {
    for (const pg::Connection::Canceller& canceller : worker.cancellers()) cancellers.push_back(canceller);
  }
  {
    std::vector<std::jthread> threads;
    for (CopyWorker& worker : workers_) threads.emplace_back([&] { work(worker, queue, outcome); });
    std::optional<std::chrono::steady_clock::time_point> give_up_at;
    while (!outcome.all_left_within(outcome.failed() ? kCancelAgain : kLook)) {
      if (stop_) {
        outcome.fail(interrupted().error());
        queue.end();
      }
      // An index may take hours, a table at the source may be locked for as long. Again until all have left: a worker
      // may have been between two statements.
      if (!outcome.failed()) continue;
      if (!give_up_at) give_up_at = std::chrono::steady_clock::now() + kCancelPatience;
      for (const auto& canceller : cancellers) {
        given_up_ = std::chrono::steady_clock::now() >= *give_up_at;
        if (!given_up_) canceller.cancel();
      }
    }
  }
  for (CopyWorker& worker : workers_) worker.close_source();
  return outcome.result();
}

}  // namespace thalweg::instantiation
