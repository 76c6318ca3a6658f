#include "telemetry/agent.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <thread>

namespace thalweg::telemetry {
namespace {

uint64_t total_of(const std::array<uint64_t, kActivityCount>& sample) {
  return std::accumulate(sample.begin(), sample.end(), uint64_t{0});
}

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

TEST(Activity, NamesAreDifferent) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kActivityCount; ++i) names.insert(name_of(static_cast<Activity>(i)));
  EXPECT_EQ(names.size(), kActivityCount);
  EXPECT_EQ(name_of(Activity::disk), "disk");
  EXPECT_EQ(name_of(Activity::flow_control), "flow_control");
}

TEST(TimeAccount, ActivitiesSumToTheTimeThatPassed) {
  const uint64_t before = now();
  TimeAccount account;
  const uint64_t made = now();
  for (int i = 0; i < 1000; ++i) account.enter(static_cast<Activity>(i % kActivityCount));
  const uint64_t sampling = now();
  const uint64_t total = total_of(account.sample());
  const uint64_t after = now();
  EXPECT_GE(total, sampling - made);  // nothing is lost
  EXPECT_LE(total, after - before);   // nothing counts twice
}

TEST(TimeAccount, TheRunningActivityCounts) {
  TimeAccount account;
  account.enter(Activity::commit);
  const auto first = account.sample()[static_cast<size_t>(Activity::commit)];
  while (account.sample()[static_cast<size_t>(Activity::commit)] == first) {
  }
  EXPECT_EQ(account.current(), Activity::commit);
}

TEST(TimeAccount, ScopeReturnsToTheActivityBefore) {
  TimeAccount account;
  account.enter(Activity::busy);
  {
    const ActivityScope outer(account, Activity::network);
    const ActivityScope inner(account, Activity::lock);
    EXPECT_EQ(account.current(), Activity::lock);
  }
  EXPECT_EQ(account.current(), Activity::busy);
}

TEST(TimeAccount, SamplesOfARunningAgentNeverExceedTheTimeThatPassed) {
  const uint64_t before = now();
  TimeAccount account;
  std::atomic<bool> stop{false};
  std::thread agent([&] {
    for (size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      account.enter(static_cast<Activity>(i % kActivityCount));
      for (int pause = 0; pause < 200; ++pause) static_cast<void>(account.current());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const uint64_t total = total_of(account.sample());
    EXPECT_LE(total, now() - before);
  }
  stop.store(true, std::memory_order_relaxed);
  agent.join();
}

TEST(LatencyHistogram, EveryLatencyLiesUnderItsBoundAndAboveTheOneBefore) {
  for (uint64_t micros = 0; micros < (uint64_t{1} << 32); micros += 1 + micros / 7) {
    LatencyHistogram histogram;
    histogram.record(std::chrono::microseconds(micros));
    size_t bucket = 0;
    while (histogram.count(bucket) == 0) ++bucket;
    const uint64_t bound = LatencyHistogram::upper_bound_micros(bucket);
    EXPECT_LE(micros, bound);
    if (bucket > 0) {
      EXPECT_GT(micros, LatencyHistogram::upper_bound_micros(bucket - 1));
    }
    EXPECT_LE(bound - micros, micros / 16) << micros;  // the relative error that the header promises
  }
}

TEST(LatencyHistogram, ClampsWhatLiesOutside) {
  LatencyHistogram histogram;
  histogram.record(std::chrono::microseconds(-5));
  histogram.record(std::chrono::hours(100));
  EXPECT_EQ(histogram.count(0), 1U);
  EXPECT_EQ(histogram.count(LatencyHistogram::kBucketCount - 1), 1U);
}

}  // namespace
}  // namespace thalweg::telemetry
