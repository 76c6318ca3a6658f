#include "capture/logical/feedback_schedule.h"

#include <gtest/gtest.h>

namespace thalweg::capture {
namespace {

using namespace std::chrono_literals;
const FeedbackSchedule::Time kStart{};

TEST(FeedbackSchedule, SpeaksRegularly) {
  FeedbackSchedule schedule(kStart, 1s);
  EXPECT_EQ(schedule.until_due(kStart, {}), 1s);
  EXPECT_EQ(schedule.until_due(kStart + 700ms, {}), 300ms);
  EXPECT_LE(schedule.until_due(kStart + 1s, {}), 0s);
  schedule.sent(kStart + 1s, {});
  EXPECT_EQ(schedule.until_due(kStart + 1s, {}), 1s);
}

TEST(FeedbackSchedule, AnswersAtOnce) {
  FeedbackSchedule schedule(kStart, 1s);
  schedule.request();
  EXPECT_LE(schedule.until_due(kStart, {}), 0s);
  schedule.sent(kStart, {});
  EXPECT_GT(schedule.until_due(kStart, {}), 0s);
}

TEST(FeedbackSchedule, NewsAreSoonAndNeverGoBack) {
  FeedbackSchedule schedule(kStart, 1s);
  EXPECT_EQ(schedule.until_due(kStart + 30ms, {5}), 70ms);
  schedule.sent(kStart + 100ms, {5});
  EXPECT_EQ(schedule.until_due(kStart + 100ms, {5}), 1s);
  EXPECT_EQ(schedule.until_due(kStart + 100ms, {4}), 1s);
  schedule.sent(kStart + 200ms, {4});
  EXPECT_EQ(schedule.confirmed(), base::Lsn{5});
}

TEST(FeedbackSchedule, AnImpatientSourceIsHeardSooner) {
  FeedbackSchedule schedule(kStart, 50ms);
  EXPECT_EQ(schedule.until_due(kStart, {5}), 50ms);
}

}  // namespace
}  // namespace thalweg::capture
