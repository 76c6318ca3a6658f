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
  EXPECT_FALSE(baton.put_down());
  EXPECT_TRUE(baton.put_down());
  EXPECT_TRUE(baton.take());
}

TEST(Baton, WorkLooksOnceMoreForWhoCameMeanwhile) {
  Baton baton;
  int looks = 0;
  EXPECT_TRUE(baton.work([&] {
    if (++looks == 1) {
      EXPECT_FALSE(baton.work([] { FAIL() << "two at work"; }));
    }
  }));
  EXPECT_EQ(looks, 2);
}

TEST(Baton, TheAgentSleepsWithoutItAndNotWhenSomebodyCame) {
  Baton baton;
  ASSERT_TRUE(baton.take());
  EXPECT_FALSE(baton.take());
  int waits = 0;
  EXPECT_FALSE(baton.sleep([&] { ++waits; }));
  EXPECT_EQ(waits, 0);
  EXPECT_TRUE(baton.sleep([&] {
    ++waits;
    EXPECT_TRUE(baton.work([] {})) << "free meanwhile";
  }));
  EXPECT_EQ(waits, 1);
  EXPECT_FALSE(baton.take()) << "the agent has it again";
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
        baton.work([&] {
          for (Desk& desk : desks) {
            const int asked = desk.asked.load(std::memory_order_relaxed);
            total += asked - desk.done.load(std::memory_order_relaxed);
            desk.done.store(asked, std::memory_order_release);
          }
        });
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
