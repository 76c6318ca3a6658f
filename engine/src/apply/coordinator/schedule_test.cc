#include "apply/coordinator/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apply/coordinator/flow_meter.h"
#include "apply/coordinator/group_hold.h"

namespace thalweg::apply {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

constexpr int64_t kSecond = 1'000'000;

struct Shape {
  uint64_t lcrs = 1;
  bool barrier = false;
};

// A schedule, its clock, and short words for what happens to it. Transactions are named by the keys they write; each
// ends 10 bytes behind the one before.
class ScheduleTest : public ::testing::Test {
 protected:
  ScheduleTest() { schedule.set_limits(limits); }

  std::unique_ptr<Transaction> transaction(std::vector<uint64_t> writes, Shape shape = {}) {
    auto made = std::make_unique<Transaction>();
    end_ += 10;
    made->commit_lsn = {end_ - 1};
    made->end_lsn = {end_};
    made->commit_time = {moment.unix_now.value};
    made->lcrs = shape.lcrs;
    made->bytes = shape.lcrs * 100;
    made->barrier = shape.barrier;
    made->writes = std::move(writes);
    made->table_hashes = {7};
    return made;
  }
  Admission offer(std::vector<uint64_t> writes, Shape shape = {}) {
    auto next = transaction(std::move(writes), shape);
    const Admission admission = schedule.admission(*next, moment);
    if (admission != Admission::no_room) schedule.add(std::move(next), admission, moment);
    return admission;
  }
  // The assignments of one look, as "applier:group" with a '+' where it begins beside others.
  std::string assigned() {
    std::string out;
    for (const Assignment& assignment : schedule.assign(moment)) {
      running[assignment.group->number] = {assignment.applier, assignment.group};
      out += (out.empty() ? "" : " ") + std::to_string(assignment.applier) + ":" +
             std::to_string(assignment.group->number) + (assignment.beside ? "+" : "");
    }
    return out;
  }
  Completion ends(uint64_t number, std::optional<ErrorCode> code = {}) {
    const auto [applier, group] = running.at(number);
    running.erase(number);
    group->run.error.reset();
    if (code) group->run.error = base::fail(*code, "told by the test").error();
    return schedule.complete(applier, *group, moment);
  }
  // Singly: its transactions before `done` have gone through, and that one is to be retried.
  Completion is_postponed(uint64_t number, size_t done, std::chrono::seconds delay) {
    Group& group = *running.at(number).second;
    group.run.done = done;
    group.run.retry_in = delay;
    const Completion completion = ends(number, ErrorCode::apply_failed);
    group.run.retry_in.reset();
    return completion;
  }
  void pass(std::chrono::microseconds time) {
    moment.now += time;
    moment.unix_now.value += time.count();
  }
  const Group& group(uint64_t number) const { return *schedule.window()[number - schedule.committed_through() - 1]; }

  ScheduleLimits limits{.appliers = 2, .group_lcrs = 100};
  Schedule schedule{{1000}, {}};
  Moment moment{.now = ScheduleClock::time_point(1h), .unix_now = {1'000 * kSecond}};
  std::map<uint64_t, std::pair<int, Group*>> running;

 private:
  uint64_t end_ = 1000;
};

TEST_F(ScheduleTest, AnIdlePathSendsEachTransactionAtOnce) {
  EXPECT_EQ(offer({1}), Admission::begins_group);
  EXPECT_EQ(assigned(), "0:1");
  EXPECT_EQ(ends(1), Completion::committed);
  EXPECT_EQ(schedule.advance(), 1u);
  EXPECT_EQ(schedule.low_watermark(), base::Lsn{1010});
  EXPECT_EQ(schedule.committed_through(), 1u);
  EXPECT_TRUE(schedule.window().empty());
}

TEST_F(ScheduleTest, OneKeyKeepsItsOrder) {
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  EXPECT_EQ(offer({1}), Admission::begins_group);
  EXPECT_EQ(assigned(), "") << "a small group waits until the one before has committed";
  EXPECT_EQ(schedule.blocked(), 1u);
  EXPECT_EQ(schedule.waits_for(group(2)).number, 1u);
  ends(1);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:2");
}

TEST_F(ScheduleTest, WhatSharesNoKeyRunsBesideOnceItHasBeenHeld) {
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({2});
  EXPECT_EQ(assigned(), "0:2") << "held, it goes behind the first one on the same connection";
  offer({3});
  EXPECT_EQ(assigned(), "") << "and nothing else does: held for others while those run";
  EXPECT_GT(schedule.next_look(moment).in, 0us);
  EXPECT_FALSE(schedule.next_look(moment).takes_more);
  pass(SchedulePolicy{}.hold_min);
  EXPECT_EQ(assigned(), "1:3");
}

TEST_F(ScheduleTest, NothingGoesBehindAGroupThatTakesLong) {
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  pass(SchedulePolicy{}.behind_wait);
  offer({2});
  EXPECT_EQ(assigned(), "");
  pass(SchedulePolicy{}.hold_min);
  EXPECT_EQ(assigned(), "1:2");
}

// Two groups that share nothing, of which the second would follow the first at once on its connection.
struct Behind {
  const char* name;
  uint64_t first_lcrs;
  uint64_t second_lcrs;
  bool data_layer;
  bool follows;
};

class ScheduleBehindTest : public ScheduleTest, public ::testing::WithParamInterface<Behind> {};

TEST_P(ScheduleBehindTest, OnlyWhatGoesInOneRoundTripFollowsOne) {
  const SchedulePolicy policy;
  limits.group_lcrs = 1000;
  schedule.set_limits(limits);
  if (GetParam().data_layer) schedule.set_solo_lcrs(0, policy.solo_lcrs_min_below_sql);
  offer({1}, {.lcrs = GetParam().first_lcrs});
  EXPECT_EQ(assigned(), "0:1");
  offer({2}, {.lcrs = GetParam().second_lcrs});
  EXPECT_EQ(assigned(), GetParam().follows ? "0:2" : "");
  pass(policy.hold_min);
  EXPECT_EQ(assigned(), GetParam().follows ? "" : "1:2") << "another applier takes it once it is not held any more";
}

INSTANTIATE_TEST_SUITE_P(Lcrs, ScheduleBehindTest,
                         ::testing::Values(Behind{"Small", 15, 15, false, true}, Behind{"Larger", 15, 16, false, false},
                                           Behind{"BehindLarger", 16, 15, false, false},
                                           Behind{"SmallBelowSql", 99, 99, true, true},
                                           Behind{"LargerBelowSql", 15, 100, true, false},
                                           Behind{"BehindLargerBelowSql", 100, 15, true, false}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(ScheduleTest, NothingGoesBehindInCommitOrder) {
  limits.in_commit_order = true;
  schedule.set_limits(limits);
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({2});
  EXPECT_EQ(assigned(), "");
}

TEST_F(ScheduleTest, TheLastGroupGrowsWhileItWaits) {
  offer({1});
  assigned();
  offer({1});
  EXPECT_EQ(offer({1}), Admission::joins_last_group);
  EXPECT_EQ(offer({2}), Admission::begins_group) << "an applier is idle, and it could run at once";
  EXPECT_EQ(group(2).transactions.size(), 2u);
}

TEST_F(ScheduleTest, InASteadyFlowItTakesWhatCouldRunAtOnce) {
  moment.steady_flow = true;
  offer({1});
  assigned();
  offer({1});
  EXPECT_EQ(offer({2}), Admission::joins_last_group);
}

TEST_F(ScheduleTest, AGroupEndsWithItsLcrs) {
  moment.steady_flow = true;
  offer({1}, {.lcrs = 60, .barrier = false});
  EXPECT_EQ(offer({2}, {.lcrs = 40, .barrier = false}), Admission::joins_last_group);
  EXPECT_EQ(offer({3}), Admission::begins_group);
  EXPECT_EQ(assigned(), "0:1") << "full, so it is not held; the second is the last one, and gathers";
  EXPECT_EQ(offer({4}, {.lcrs = 1000, .barrier = false}), Admission::begins_group) << "one transaction may have more";
}

TEST_F(ScheduleTest, ABarrierWaitsForAllAndAllWaitForIt) {
  offer({1});
  assigned();
  offer({}, {.lcrs = 1, .barrier = true});
  EXPECT_EQ(offer({2}), Admission::begins_group);
  EXPECT_EQ(assigned(), "");
  ends(1);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:2");
  EXPECT_EQ(schedule.blocked(), 1u);
  ends(2);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:3");
}

TEST_F(ScheduleTest, TheLowWatermarkWaitsForTheOldestGroup) {
  moment.more_comes = false;  // nothing is held
  offer({1});
  assigned();
  offer({2});
  EXPECT_EQ(assigned(), "1:2");
  ends(2);
  EXPECT_EQ(schedule.advance(), 0u);
  EXPECT_EQ(schedule.low_watermark(), base::Lsn{1000});
  schedule.cover({1025});
  ends(1);
  EXPECT_EQ(schedule.advance(), 2u);
  EXPECT_EQ(schedule.low_watermark(), base::Lsn{1025}) << "a position behind the last group is covered by it";
  schedule.cover({1030});
  EXPECT_EQ(schedule.low_watermark(), base::Lsn{1030});
}

TEST_F(ScheduleTest, ThereIsRoomForSoManyGroups) {
  moment.more_comes = false;
  limits.appliers = 1;
  schedule.set_limits(limits);
  EXPECT_EQ(offer({1}, {.lcrs = 1, .barrier = true}), Admission::begins_group);
  EXPECT_EQ(offer({1}, {.lcrs = 1, .barrier = true}), Admission::begins_group);
  EXPECT_EQ(offer({1}, {.lcrs = 1, .barrier = true}), Admission::begins_group);
  EXPECT_EQ(offer({1}, {.lcrs = 1, .barrier = true}), Admission::no_room) << "one for the applier and two over";
  assigned();
  EXPECT_EQ(offer({1}, {.lcrs = 1, .barrier = true}), Admission::begins_group);
}

// A group whose applier could not commit it, and the completion and mode that must follow.
struct Failure {
  const char* name;
  ErrorCode code;
  bool before_it_is_open;  // another group before it runs
  Completion completion;
  GroupMode mode;
};

class ScheduleFailureTest : public ScheduleTest, public ::testing::WithParamInterface<Failure> {};

TEST_P(ScheduleFailureTest, IsDecidedByItsError) {
  moment.more_comes = false;
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({2});
  EXPECT_EQ(assigned(), "1:2");
  const uint64_t number = GetParam().before_it_is_open ? 2 : 1;
  EXPECT_EQ(ends(number, GetParam().code), GetParam().completion);
  EXPECT_EQ(group(number).mode, GetParam().mode);
  EXPECT_EQ(group(number).state, GroupState::waiting);
  if (GetParam().completion != Completion::again) return;
  EXPECT_EQ(schedule.is_ready(group(number)), !GetParam().before_it_is_open) << "behind all before it";
}

INSTANTIATE_TEST_SUITE_P(
    Codes, ScheduleFailureTest,
    ::testing::Values(Failure{"Data", ErrorCode::apply_failed, true, Completion::again, GroupMode::singly},
                      Failure{"Busy", ErrorCode::database_busy, true, Completion::again, GroupMode::together},
                      Failure{"BusyAlone", ErrorCode::database_busy, false, Completion::again, GroupMode::singly},
                      Failure{"Connection", ErrorCode::database_unreachable, true, Completion::failed,
                              GroupMode::together},
                      Failure{"Stopping", ErrorCode::engine_stopping, true, Completion::stopping, GroupMode::together}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ScheduleTest, AFullGroupBeginsBesideWhatItDependsOn) {
  moment.steady_flow = true;
  offer({1}, {.lcrs = 100, .barrier = false});
  offer({1, 2}, {.lcrs = 100, .barrier = false});
  EXPECT_EQ(assigned(), "0:1 1:2+");
  EXPECT_TRUE(schedule.settle().empty());
  ends(1);
  const auto settled = schedule.settle();
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].applier, 1);
  EXPECT_TRUE(settled[0].committed);
}

TEST_F(ScheduleTest, WhatBeganBesideAFailureIsToldToRollBack) {
  moment.steady_flow = true;
  offer({1}, {.lcrs = 100, .barrier = false});
  offer({1, 2}, {.lcrs = 100, .barrier = false});
  EXPECT_EQ(assigned(), "0:1 1:2+");
  ends(1, ErrorCode::apply_failed);
  const auto settled = schedule.settle();
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_FALSE(settled[0].committed);
}

TEST_F(ScheduleTest, AfterOneWasRefusedNothingBeginsBesideForAWhile) {
  moment.steady_flow = true;
  offer({1}, {.lcrs = 100, .barrier = false});
  offer({1, 2}, {.lcrs = 100, .barrier = false});
  EXPECT_EQ(assigned(), "0:1 1:2+");
  EXPECT_EQ(ends(2, ErrorCode::database_busy), Completion::again);
  EXPECT_EQ(assigned(), "");
  pass(SchedulePolicy{}.beside_pause);
  EXPECT_EQ(assigned(), "") << "it waits for all before it now";
  ends(1);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:2");
}

TEST_F(ScheduleTest, WhatTouchesAParkedRowIsParkedBehindIt) {
  moment.more_comes = false;
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  running.at(1).second->transactions.front()->parked_with = base::fail(ErrorCode::apply_failed, "parked").error();
  offer({1, 2});
  offer({3});
  EXPECT_EQ(assigned(), "1:3");
  EXPECT_EQ(ends(1), Completion::committed);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:2");
  EXPECT_TRUE(running.at(2).second->transactions.front()->park_behind);
  EXPECT_EQ(running.at(2).second->mode, GroupMode::singly);
}

TEST_F(ScheduleTest, NothingBeginsBeforeAStandstill) {
  moment.more_comes = false;
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({1});
  offer({2});
  moment.standstill = true;
  EXPECT_EQ(assigned(), "");
  ends(1);
  schedule.advance();
  EXPECT_EQ(assigned(), "");
  moment.standstill = false;
  EXPECT_EQ(assigned(), "0:2 1:3");
}

TEST_F(ScheduleTest, WhatOthersWaitForInCommitOrderBeginsBeforeAStandstill) {
  limits.in_commit_order = true;
  schedule.set_limits(limits);
  moment.more_comes = false;
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({1});
  offer({2});
  EXPECT_EQ(assigned(), "1:3") << "it will wait for the second one to commit";
  offer({3});
  moment.standstill = true;
  ends(1);
  schedule.advance();
  EXPECT_EQ(assigned(), "0:2") << "or the third one would run for ever";
  ends(2);
  schedule.advance();
  EXPECT_EQ(assigned(), "") << "nothing waits for the fourth one";
  ends(3);
  schedule.advance();
  EXPECT_EQ(schedule.running(), 0);
  EXPECT_EQ(assigned(), "");
}

TEST_F(ScheduleTest, FewerAppliersGetGroupsAndTheOthersFinishTheirs) {
  moment.more_comes = false;
  offer({1});
  EXPECT_EQ(assigned(), "0:1");
  offer({2});
  EXPECT_EQ(assigned(), "1:2");
  limits.appliers = 1;
  schedule.set_limits(limits);
  offer({3});
  EXPECT_EQ(assigned(), "");
  EXPECT_EQ(ends(2), Completion::committed);
  EXPECT_EQ(assigned(), "") << "its applier is one too many";
  ends(1);
  EXPECT_EQ(assigned(), "0:3");
}

struct Sleep {
  const char* name;
  bool runs;
  bool waits_for_it;
  bool steady_flow;
  bool in_commit_order;
  std::chrono::microseconds in;
};

class ScheduleNextLookTest : public ScheduleTest, public ::testing::WithParamInterface<Sleep> {};

TEST_P(ScheduleNextLookTest, IsWhenSomethingHasToBeDecided) {
  const Sleep& sleep = GetParam();
  limits.in_commit_order = sleep.in_commit_order;
  schedule.set_limits(limits);
  if (sleep.runs) {
    offer({1}, {.lcrs = 200, .barrier = false});  // nothing goes behind it
    assigned();
  }
  moment.steady_flow = sleep.steady_flow;
  if (sleep.waits_for_it) {
    offer({2});
    assigned();
  }
  EXPECT_EQ(schedule.next_look(moment).in, sleep.in);
}

INSTANTIATE_TEST_SUITE_P(States, ScheduleNextLookTest,
                         ::testing::Values(Sleep{"Idle", false, false, false, false, 100ms},
                                           Sleep{"Runs", true, false, false, false, 100ms},
                                           Sleep{"RunsInCommitOrder", true, false, false, true, 20ms},
                                           Sleep{"HoldsWhileOthersRun", true, true, false, false, 5ms},
                                           Sleep{"HoldsInASteadyFlow", true, true, true, false, 1ms}),
                         [](const auto& tested) { return tested.param.name; });

TEST(FlowMeter, SeesASteadyFlowOverItsWindow) {
  const SchedulePolicy policy;
  FlowMeter meter(policy);
  ScheduleClock::time_point now(1h);
  meter.measure(0, now);
  const uint64_t steady = policy.flow_lcrs_per_ms * 20;
  meter.measure(steady, now + 20ms);
  EXPECT_TRUE(meter.steady());
  meter.measure(steady + 1, now + 30ms);
  EXPECT_TRUE(meter.steady()) << "not yet measured";
  meter.measure(2 * steady - 1, now + 40ms);
  EXPECT_FALSE(meter.steady());
}

// Groups that depend on nothing of it go on, the others wait.
TEST_F(ScheduleTest, AGroupWaitsForItsRetry) {
  offer({1});
  ASSERT_EQ(assigned(), "0:1");
  ASSERT_EQ(ends(1, ErrorCode::apply_failed), Completion::again);
  ASSERT_EQ(assigned(), "0:1");
  EXPECT_FALSE(schedule.awaits_only_retries(moment));
  EXPECT_EQ(is_postponed(1, 0, 10s), Completion::postponed);
  offer({1});
  offer({2});
  EXPECT_EQ(assigned(), "0:3");
  EXPECT_FALSE(schedule.awaits_only_retries(moment)) << "3 runs";
  EXPECT_EQ(ends(3), Completion::committed);
  EXPECT_EQ(assigned(), "");
  EXPECT_TRUE(schedule.awaits_only_retries(moment));
  EXPECT_EQ(schedule.advance(), 0u);
  pass(10s);
  EXPECT_FALSE(schedule.awaits_only_retries(moment));
  EXPECT_EQ(assigned(), "0:1");
  EXPECT_EQ(ends(1), Completion::committed);
  EXPECT_EQ(assigned(), "0:2");
}

TEST_F(ScheduleTest, InCommitOrderNothingOvertakesAGroupThatWaitsForItsRetry) {
  limits.in_commit_order = true;
  schedule.set_limits(limits);
  offer({1});
  ASSERT_EQ(assigned(), "0:1");
  ASSERT_EQ(ends(1, ErrorCode::apply_failed), Completion::again);
  ASSERT_EQ(assigned(), "0:1");
  EXPECT_EQ(is_postponed(1, 0, 10s), Completion::postponed);
  offer({2});
  EXPECT_EQ(assigned(), "");
  EXPECT_TRUE(schedule.awaits_only_retries(moment));
  pass(10s);
  EXPECT_EQ(assigned(), "0:1 1:2");
}

TEST_F(ScheduleTest, OtherPoliciesEndTheWaitForARetry) {
  offer({1});
  ASSERT_EQ(assigned(), "0:1");
  ASSERT_EQ(ends(1, ErrorCode::apply_failed), Completion::again);
  ASSERT_EQ(assigned(), "0:1");
  EXPECT_EQ(is_postponed(1, 0, 3600s), Completion::postponed);
  EXPECT_EQ(assigned(), "");
  schedule.retry_now();
  EXPECT_EQ(assigned(), "0:1");
}

// While it waits for its retry, others may remove from the error queue what its transactions were parked behind.
TEST_F(ScheduleTest, WhatAGroupHasParkedCountsWhileItWaitsForItsRetry) {
  limits.appliers = 1;
  schedule.set_limits(limits);
  offer({9});
  ASSERT_EQ(assigned(), "0:1");
  offer({1});
  offer({2});
  offer({1});  // all three wait in one group
  ASSERT_EQ(ends(1), Completion::committed);
  schedule.advance();
  ASSERT_EQ(assigned(), "0:2");
  ASSERT_EQ(group(2).transactions.size(), 3u);
  ASSERT_EQ(ends(2, ErrorCode::apply_failed), Completion::again);
  ASSERT_EQ(assigned(), "0:2");
  group(2).transactions[0]->parked_with = base::fail(ErrorCode::apply_failed, "told by the test").error();
  EXPECT_EQ(is_postponed(2, 1, 10s), Completion::postponed);
  pass(10s);
  ASSERT_EQ(assigned(), "0:2");
  EXPECT_FALSE(group(2).transactions[1]->park_behind);
  EXPECT_TRUE(group(2).transactions[2]->park_behind);
  EXPECT_EQ(is_postponed(2, 1, 10s), Completion::postponed);
  schedule.set_parked({});
  pass(10s);
  ASSERT_EQ(assigned(), "0:2");
  EXPECT_FALSE(group(2).transactions[2]->park_behind) << "what it stood behind is gone";
  EXPECT_EQ(ends(2), Completion::committed);
  EXPECT_EQ(schedule.advance(), 3u);
}

}  // namespace
}  // namespace thalweg::apply
