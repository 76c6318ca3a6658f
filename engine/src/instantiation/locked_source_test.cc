#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "instantiation/instantiation_harness.h"

// A copy that waits for somebody's lock at the source.

namespace thalweg::instantiation {
namespace {

using base::ErrorCode;

// Somebody else's lock at the source, until the end of it or, where the engine does not mind it, for ten seconds.
class SourceLock {
 public:
  SourceLock(pg::Connection connection, const std::string& table)
      : connection_(std::move(connection)), thread_([this](const std::stop_token& stop) { wait(stop); }) {
    EXPECT_TRUE(connection_.script("BEGIN; LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"));
  }
  bool held() const { return !released_; }
  // Until somebody waits for it, `then` is called.
  void when_waited_for(pg::Connection watcher, std::function<void()> then) {
    watcher_ =
        std::jthread([watcher = std::move(watcher), then = std::move(then)](const std::stop_token& stop) mutable {
          while (!stop.stop_requested()) {
            const auto waiting = watcher.script("SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL");
            if (waiting && waiting->size() > 0) return then();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        });
  }

 private:
  void wait(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, stop, std::chrono::seconds(10), [] { return false; });
    released_ = true;
    EXPECT_TRUE(connection_.script("COMMIT"));
  }
  pg::Connection connection_;
  std::atomic<bool> released_{false};
  std::jthread watcher_;
  std::jthread thread_;
};

class LockedSource : public InstantiationTest {
 protected:
  void stop_at_a_locked_source(bool analysed);
};

// `analysed`: the plan needs no look at the table, and it is the copy that waits.
void LockedSource::stop_at_a_locked_source(bool analysed) {
  run(*source_, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000)");
  if (analysed) run(*source_, "ANALYZE t");
  Instantiation instantiation(options({{"public", "t"}}), progress_, stop_);
  ASSERT_TRUE(instantiation.assess(true));
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(instantiation.prepare());
  SourceLock lock(open(source_name_), "t");
  lock.when_waited_for(open(source_name_), [&] { stop_ = true; });
  const auto copied = instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  EXPECT_TRUE(lock.held()) << "it waited until the lock was gone";
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::engine_stopping) << copied.error().message;
}

TEST_F(LockedSource, AStopReachesAPlanThatWaits) { stop_at_a_locked_source(false); }

TEST_F(LockedSource, AStopReachesACopyThatWaits) { stop_at_a_locked_source(true); }

TEST_F(LockedSource, AFailureReachesACopyThatWaits) {
  run(*source_,
      "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000); "
      "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1); ANALYZE");
  Instantiation instantiation(options({{"public", "t"}, {"public", "u"}}), progress_, stop_);
  ASSERT_TRUE(instantiation.assess(true));
  NamedSnapshot taken = snapshot();
  ASSERT_TRUE(instantiation.prepare());
  run(*destination_, "ALTER TABLE u ADD CONSTRAINT boom CHECK (id > 1)");
  SourceLock lock(open(source_name_), "t");
  const auto copied = instantiation.copy(taken.slot.snapshot_name, taken.slot.consistent_point);
  EXPECT_TRUE(lock.held()) << "it waited until the lock was gone";
  ASSERT_FALSE(copied);
  EXPECT_NE(copied.error().message.find("boom"), std::string::npos) << copied.error().message;
  // Nobody of it goes on waiting at the source.
  EXPECT_EQ(value(*source_, "SELECT count(*) FROM pg_locks WHERE NOT granted"), "0");
}

}  // namespace
}  // namespace thalweg::instantiation
