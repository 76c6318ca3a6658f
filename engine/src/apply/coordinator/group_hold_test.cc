#include "apply/coordinator/group_hold.h"

#include <gtest/gtest.h>

namespace thalweg::apply {
namespace {

using namespace std::chrono_literals;

constexpr SchedulePolicy kPolicy;

TEST(GroupHold, APathWithNothingElseToDoNeverWaits) { EXPECT_EQ(group_hold(kPolicy, 1h, false, false), 0us); }

TEST(GroupHold, IsASmallPartOfTheDelay) {
  EXPECT_EQ(group_hold(kPolicy, 3ms, false, true), 300us);
  EXPECT_EQ(group_hold(kPolicy, 8ms, true, false), 800us);
}

TEST(GroupHold, GathersWhileOthersRun) { EXPECT_EQ(group_hold(kPolicy, 1ms, true, false), 500us); }

TEST(GroupHold, IsBounded) {
  EXPECT_EQ(group_hold(kPolicy, 1h, true, false), 2ms);
  EXPECT_EQ(group_hold(kPolicy, 1h, true, true), 100ms);
  EXPECT_EQ(group_hold(kPolicy, -1h, false, true), 0us) << "the source's clock is ahead";
}

TEST(GroupHold, GoesByItsPolicy) {
  const SchedulePolicy policy{.hold_part = 2, .hold_min = 1ms, .hold_max = 3ms, .flow_hold_max = 4ms};
  EXPECT_EQ(group_hold(policy, 5ms, true, false), 2500us);
  EXPECT_EQ(group_hold(policy, 0ms, true, false), 1ms);
  EXPECT_EQ(group_hold(policy, 1h, true, false), 3ms);
  EXPECT_EQ(group_hold(policy, 1h, true, true), 4ms);
}

}  // namespace
}  // namespace thalweg::apply
