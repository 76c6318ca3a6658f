#include "daemon/destination_course.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

namespace thalweg::daemon {
namespace {

using control::DesiredStatus;
using Phase = DestinationCourse::Phase;
using Ending = DestinationCourse::Ending;

constexpr Phase kPhases[] = {Phase::resting, Phase::preparing, Phase::starting,
                             Phase::live,    Phase::leaving,   Phase::removing};

// The phases that the request interrupts.
std::set<Phase> interrupted_by(const std::function<void(DestinationCourse&)>& request) {
  std::set<Phase> out;
  for (const Phase phase : kPhases) {
    const bool removes = phase == Phase::removing;
    DestinationCourse course(removes ? DesiredStatus::dropped : DesiredStatus::enabled, false);
    course.begin();
    course.enter(phase);
    EXPECT_FALSE(course.interrupt());
    request(course);
    if (course.interrupt()) out.insert(phase);
  }
  return out;
}

TEST(DestinationCourse, TheEndOfTheSessionInterruptsEverything) {
  EXPECT_EQ(interrupted_by([](auto& course) { course.end(false); }), std::set(std::begin(kPhases), std::end(kPhases)));
}

TEST(DestinationCourse, OnlyAConsumerThatReadsTheQueueDrains) {
  std::set<Phase> all(std::begin(kPhases), std::end(kPhases));
  all.erase(Phase::live);
  EXPECT_EQ(interrupted_by([](auto& course) { course.end(true); }), all);
  DestinationCourse course(DesiredStatus::enabled, false);
  course.begin();
  course.enter(Phase::live);
  course.end(true);
  EXPECT_EQ(course.ending(), Ending::drained);
  course.end(false);
  EXPECT_EQ(course.ending(), Ending::now) << "it was waited for long enough";
  EXPECT_TRUE(course.interrupt());
}

TEST(DestinationCourse, APauseInterruptsWhatHasTakenNothing) {
  const std::set expected{Phase::resting, Phase::preparing, Phase::starting};
  auto out = interrupted_by([](auto& course) {
    if (!course.is_dropped()) course.desire(DesiredStatus::disabled, false);
  });
  EXPECT_EQ(out, expected);
  EXPECT_EQ(interrupted_by([](auto& course) {
              if (!course.is_dropped()) course.change_rules();
            }),
            expected);
}

TEST(DestinationCourse, WhatReadsTheQueueLeavesItWhenItIsPausedOrGetsOtherRules) {
  DestinationCourse course(DesiredStatus::enabled, false);
  course.begin();
  course.begin_try();
  course.enter(Phase::starting);
  course.desire(DesiredStatus::disabled, false);
  EXPECT_TRUE(course.interrupt()) << "its start";
  EXPECT_FALSE(course.leaves());
  course.enter(Phase::live);
  EXPECT_FALSE(course.interrupt()) << "by now it may have taken something";
  EXPECT_TRUE(course.leaves());
  course.enter(Phase::leaving);
  course.desire(DesiredStatus::enabled, false);
  EXPECT_TRUE(course.leaves()) << "to the end, whatever is desired meanwhile";
  course.enter(Phase::resting);
  course.begin_try();
  course.enter(Phase::live);
  EXPECT_FALSE(course.leaves());
  course.change_rules();
  EXPECT_TRUE(course.leaves());
}

TEST(DestinationCourse, WhatWasInterruptedEndsThoughItIsWantedAgain) {
  DestinationCourse course(DesiredStatus::enabled, false);
  course.begin();
  course.begin_try();
  course.desire(DesiredStatus::disabled, false);
  course.desire(DesiredStatus::enabled, false);
  EXPECT_TRUE(course.interrupt()) << "its statement may have been given up already";
  EXPECT_TRUE(course.is_cut_short());
  course.enter(Phase::resting);
  EXPECT_FALSE(course.interrupt());
}

TEST(DestinationCourse, ADropInterruptsEverything) {
  auto out = interrupted_by([](auto& course) { course.desire(DesiredStatus::dropped, true); });
  EXPECT_EQ(out, std::set(std::begin(kPhases), std::end(kPhases))) << "a removal goes on with other force";
  DestinationCourse course(DesiredStatus::dropped, false);
  EXPECT_FALSE(course.desire(DesiredStatus::dropped, false)) << "nothing new";
  EXPECT_TRUE(course.desire(DesiredStatus::dropped, true));
  course.begin_removal();
  EXPECT_FALSE(course.interrupt());
  EXPECT_TRUE(course.force());
}

TEST(DestinationCourse, ARestEndsWithWhatIsAskedFor) {
  const auto ends_with = [](const std::function<void(DestinationCourse&)>& request) {
    DestinationCourse course(DesiredStatus::enabled, false);
    course.begin();
    EXPECT_FALSE(course.is_due());
    request(course);
    return course.is_due();
  };
  EXPECT_TRUE(ends_with([](auto& course) { course.retry(); }));
  EXPECT_TRUE(ends_with([](auto& course) { course.change_rules(); }));
  EXPECT_TRUE(ends_with([](auto& course) { course.desire(DesiredStatus::disabled, false); }));
  EXPECT_TRUE(ends_with([](auto& course) { course.end(true); }));
  EXPECT_FALSE(ends_with([](auto& course) { course.start_over(); })) << "for a rest, a retry goes with it";
}

TEST(DestinationCourse, ATryTakesUpAllThatWasAskedFor) {
  DestinationCourse course(DesiredStatus::enabled, false);
  course.begin();
  course.retry();
  course.change_rules();
  course.start_over();
  EXPECT_TRUE(course.begin_try());
  EXPECT_FALSE(course.interrupt());
  EXPECT_FALSE(course.starts_over());
  EXPECT_FALSE(course.is_due());
  EXPECT_FALSE(course.begin_try()) << "no retry";
  course.change_rules();
  EXPECT_TRUE(course.begin_try()) << "earlier errors are those of other rules";
}

}  // namespace
}  // namespace thalweg::daemon
