#include "base/baton.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace thalweg::base {
namespace {

constexpr auto kNoWork = [] { FAIL() << "somebody else has the baton"; };
constexpr auto kNoWait = [] { FAIL() << "nobody else has the baton"; };

TEST(Baton, TheAgentHasItFromTheBeginning) {
  Baton baton;
  EXPECT_FALSE(baton.work(kNoWork));
}

TEST(Baton, WorkLooksOnceMoreForWhoCameMeanwhile) {
  Baton baton;
  baton.lend(
      [&] {
        int looks = 0;
        EXPECT_TRUE(baton.work([&] {
          if (++looks > 1) return;
          EXPECT_FALSE(baton.work(kNoWork));
          EXPECT_FALSE(baton.work(kNoWork));
        }));
        EXPECT_EQ(looks, 2) << "one more for both";
      },
      kNoWait);
}

TEST(Baton, TheAgentSleepsWithoutItAndNotWhenSomebodyCame) {
  Baton baton;
  EXPECT_FALSE(baton.work(kNoWork));
  int waits = 0;
  EXPECT_FALSE(baton.sleep([&] { ++waits; }));
  EXPECT_EQ(waits, 0);
  EXPECT_TRUE(baton.sleep([&] {
    ++waits;
    EXPECT_TRUE(baton.work([] {})) << "free meanwhile";
  }));
  EXPECT_EQ(waits, 1);
  EXPECT_FALSE(baton.work(kNoWork)) << "the agent has it again";
}

TEST(Baton, TheAgentLendsItThoughSomebodyCameAndHasItAgain) {
  Baton baton;
  EXPECT_FALSE(baton.work(kNoWork));
  int looks = 0;
  baton.lend([&] { EXPECT_TRUE(baton.work([&] { ++looks; })); }, kNoWait);
  EXPECT_EQ(looks, 1);
  EXPECT_FALSE(baton.work(kNoWork)) << "the agent has it again";
}

TEST(Baton, TheAgentWaitsForWhoHasItWhenItComesBack) {
  Baton baton;
  std::atomic<bool> begun{false};    // writer: the worker. Reader: the agent
  std::atomic<bool> may_end{false};  // writer: the agent. Reader: the worker
  int done = 0;                      // the holder's
  std::thread worker;
  baton.lend(
      [&] {
        worker = std::thread([&] {
          baton.work([&] {
            begun = true;
            while (!may_end) std::this_thread::yield();
            done = 1;
          });
        });
        while (!begun) std::this_thread::yield();
      },
      [&] { may_end = true; });
  EXPECT_EQ(done, 1);
  worker.join();
}

// Each thread leaves work in plain memory of its own and sees that somebody does it. Work that nobody does hangs; two
// that do it at once, or one that does not see it all, is a data race under the thread sanitizer.
TEST(Baton, NoWorkIsLeftUndone) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 20'000;
  struct Desk {
    std::atomic<int> asked{0};  // writer: its thread. Reader: the holder. Relaxed: the baton orders them
    std::atomic<int> done{0};   // writer: the holder (release). Reader: its thread (acquire)
  };
  Baton baton;
  std::vector<Desk> desks(kThreads);
  int total = 0;  // the holder's
  std::vector<std::thread> threads;
  const auto come_and_work = [&](Desk& own) {
    for (int round = 1; round <= kRounds; ++round) {
      own.asked.store(round, std::memory_order_relaxed);
      baton.work([&] {
        for (Desk& desk : desks) {
          const int asked = desk.asked.load(std::memory_order_relaxed);
          total += asked - desk.done.load(std::memory_order_relaxed);
          desk.done.store(asked, std::memory_order_release);
        }
      });
      while (own.done.load(std::memory_order_acquire) < round) std::this_thread::yield();
    }
  };
  baton.lend(
      [&] {
        for (Desk& desk : desks) threads.emplace_back([&] { come_and_work(desk); });
        for (std::thread& thread : threads) thread.join();
      },
      kNoWait);
  EXPECT_EQ(total, kThreads * kRounds);
}

}  // namespace
}  // namespace thalweg::base
