#include "base/baton.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace thalweg::base {
namespace {

TEST(Baton, WhoHasItHearsOfEverybodyWhoCame) {
  Baton baton;
  ASSERT_TRUE(baton.take());
  EXPECT_FALSE(baton.take());
  EXPECT_FALSE(baton.take());
  EXPECT_FALSE(baton.let_go());
  EXPECT_TRUE(baton.let_go());
  EXPECT_TRUE(baton.take());
}

// Each thread leaves work in plain memory of its own and sees that somebody does it. Work that nobody does hangs; two
// that do it at once, or one that does not see it all, is a data race under the thread sanitizer.
TEST(Baton, NoWorkIsLeftUndone) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 20'000;
  struct Desk {
    std::atomic<int> asked{0};  // writer: its thread. Reader: who has the baton. Relaxed: the baton orders them
    std::atomic<int> done{0};   // writer: who has the baton (release). Reader: its thread (acquire)
  };
  Baton baton;
  std::vector<Desk> desks(kThreads);
  int total = 0;  // whoever has the baton
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 1; round <= kRounds; ++round) {
        desks[i].asked.store(round, std::memory_order_relaxed);
        if (baton.take()) {
          do {
            for (Desk& desk : desks) {
              const int asked = desk.asked.load(std::memory_order_relaxed);
              total += asked - desk.done.load(std::memory_order_relaxed);
              desk.done.store(asked, std::memory_order_release);
            }
          } while (!baton.let_go());
        }
        while (desks[i].done.load(std::memory_order_acquire) < round) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(baton.take());
  EXPECT_EQ(total, kThreads * kRounds);
}

}  // namespace
}  // namespace thalweg::base
