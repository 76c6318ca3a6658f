#include "base/doorbell.h"

#include <gtest/gtest.h>

#include <thread>

namespace thalweg::base {
namespace {

using namespace std::chrono_literals;

TEST(Doorbell, RingAfterTicketEndsTheWaitAtOnce) {
  Doorbell bell;
  const uint32_t seen = bell.ticket();
  bell.ring();
  bell.wait(seen, 1h);  // a missed ring would hang the test
  EXPECT_NE(bell.ticket(), seen);
}

TEST(Doorbell, WaitEndsWithoutARing) {
  Doorbell bell;
  bell.wait(bell.ticket(), 1ms);
  bell.wait(bell.ticket(), 0us);
  bell.wait(bell.ticket(), -1us);
}

// Two threads hand a turn to and fro through plain memory; a lost ring would hang for an hour, and a missing
// happens-before edge is a data race under the thread sanitizer.
TEST(Doorbell, NoRingIsLostAndWritesArePublished) {
  constexpr int kRounds = 20'000;
  struct Side {
    Doorbell bell;
    std::atomic<int> turn{0};  // writer: the other side (release), reader: its owner (acquire)
  };
  Side left, right;
  int shared = 0;
  const auto await = [](Side& side, int round) {
    while (true) {
      const uint32_t seen = side.bell.ticket();
      if (side.turn.load(std::memory_order_acquire) >= round) return;
      side.bell.wait(seen, 1h);
    }
  };
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      await(right, round);
      ++shared;
      left.turn.store(round, std::memory_order_release);
      left.bell.ring();
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    ++shared;
    right.turn.store(round, std::memory_order_release);
    right.bell.ring();
    await(left, round);
  }
  other.join();
  EXPECT_EQ(shared, 2 * kRounds);
}

}  // namespace
}  // namespace thalweg::base
