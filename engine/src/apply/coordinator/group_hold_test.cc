#include "apply/coordinator/group_hold.h"

#include <gtest/gtest.h>

namespace thalweg::apply {
namespace {

using namespace std::chrono_literals;

TEST(GroupHold, APathWithNothingElseToDoNeverWaits) { EXPECT_EQ(group_hold(1h, false, false), 0us); }

TEST(GroupHold, IsASmallPartOfTheDelay) {
  EXPECT_EQ(group_hold(3ms, false, true), 300us);
  EXPECT_EQ(group_hold(8ms, true, false), 800us);
}

TEST(GroupHold, GathersWhileOthersRun) { EXPECT_EQ(group_hold(1ms, true, false), kGather); }

TEST(GroupHold, IsBounded) {
  EXPECT_EQ(group_hold(1h, true, false), kHoldMax);
  EXPECT_EQ(group_hold(1h, true, true), kFlowHoldMax);
  EXPECT_EQ(group_hold(-1h, false, true), 0us) << "the source's clock is ahead";
}

}  // namespace
}  // namespace thalweg::apply
