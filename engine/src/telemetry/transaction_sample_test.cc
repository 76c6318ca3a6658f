#include "telemetry/transaction_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace thalweg::telemetry {
namespace {

TEST(KeepNotable, KeepsTheOldestAndTheLargest) {
  std::vector<TransactionSample> all;
  for (uint32_t i = 1; i <= 1000; ++i) {
    all.push_back({.xid = {i},
                   .state = "OPEN",
                   .first_lsn = {},
                   .commit_lsn = {},
                   .begun = std::chrono::steady_clock::time_point(std::chrono::seconds(i * 7919 % 1009)),
                   .bytes = i});
  }
  auto by_age = all;
  std::ranges::sort(by_age, {}, &TransactionSample::begun);
  keep_notable(all, 20);
  ASSERT_EQ(all.size(), 20U);
  std::set<uint32_t> kept;
  for (const auto& sample : all) kept.insert(sample.xid.value);
  EXPECT_EQ(kept.size(), 20U);
  for (size_t i = 0; i < 10; ++i) EXPECT_TRUE(kept.contains(by_age[i].xid.value)) << i;
  for (uint32_t i = 1000; i > 990; --i) EXPECT_TRUE(kept.contains(i)) << i;
  keep_notable(all, 20);
  EXPECT_EQ(all.size(), 20U);
}

}  // namespace
}  // namespace thalweg::telemetry
