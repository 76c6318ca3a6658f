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

TEST(ReceivePace, NapsLongerOnlyWhenBehind) {
  EXPECT_EQ(ReceivePace::nap(0us), ReceivePace::kNap);
  EXPECT_EQ(ReceivePace::nap(ReceivePace::kBehind), ReceivePace::kNap);
  EXPECT_EQ(ReceivePace::nap(ReceivePace::kBehind + 1us), ReceivePace::kCatchUpNap);
}

}  // namespace
}  // namespace thalweg::capture
