#include "capture/logical/receive_pace.h"

#include <gtest/gtest.h>

namespace thalweg::capture {
namespace {

using namespace std::chrono_literals;

TEST(ReceivePace, IsHotWhileMessagesComeFast) {
  ReceivePace pace;
  const ReceivePace::Time start{1h};
  EXPECT_FALSE(pace.hot(start, 0));
  EXPECT_FALSE(pace.hot(start + 500us, 1'000)) << "the window is not over";
  EXPECT_TRUE(pace.hot(start + 1ms, 1'000));
  EXPECT_TRUE(pace.hot(start + 2ms, 1'024));
  EXPECT_FALSE(pace.hot(start + 3ms, 1'047));
}

TEST(ReceivePace, OneBurstAfterAPauseIsNotHot) {
  ReceivePace pace;
  const ReceivePace::Time start{1h};
  EXPECT_FALSE(pace.hot(start, 0));
  EXPECT_FALSE(pace.hot(start + 100ms, 100));
}

constexpr ReceivePace::Source kChanges{};
constexpr ReceivePace::Source kBatches{.in_batches = true};

TEST(ReceivePace, NapsForASmallPartOfTheDelay) {
  EXPECT_EQ(ReceivePace::nap(-5s, kChanges), ReceivePace::kNapMin);
  EXPECT_EQ(ReceivePace::nap(1ms, kChanges), ReceivePace::kNapMin);
  EXPECT_EQ(ReceivePace::nap(100ms, kChanges), 2ms);
  EXPECT_EQ(ReceivePace::nap(1h, kChanges), ReceivePace::kNapMax);
}

TEST(ReceivePace, NapsBetweenBatchesOnlyWhenLate) {
  EXPECT_EQ(ReceivePace::nap(14ms, kBatches), 0us);
  EXPECT_EQ(ReceivePace::nap(100ms, kBatches), 2ms);
}

TEST(ReceivePace, NapsShortlyWhereTheSocketHoldsLittle) {
  EXPECT_EQ(ReceivePace::nap(1h, {.over_tcp = false}), ReceivePace::kNapMin);
}

}  // namespace
}  // namespace thalweg::capture
