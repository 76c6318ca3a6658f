#include "queue/spmc_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;

TEST(SpmcQueue, HoldsOneLessThanItsSlots) {
  for (const size_t slots : {2, 3, 5, 8}) {
    SpmcQueue<int> queue(slots, 1);
    for (size_t i = 0; i + 1 < slots; ++i) EXPECT_TRUE(queue.try_enqueue(static_cast<int>(i)));
    EXPECT_FALSE(queue.try_enqueue(99));
    EXPECT_FALSE(queue.enqueue(99, 1ms));
    EXPECT_EQ(*queue.try_browse(0), 0);
    queue.dequeue(0);
    EXPECT_TRUE(queue.try_enqueue(99));
    EXPECT_FALSE(queue.try_enqueue(100));
  }
}

TEST(SpmcQueue, BrowseReturnsTheSameItemUntilDequeue) {
  SpmcQueue<int> queue(4, 1);
  EXPECT_EQ(queue.try_browse(0), nullptr);
  EXPECT_EQ(queue.browse(0, 1ms), nullptr);
  ASSERT_TRUE(queue.try_enqueue(7));
  ASSERT_TRUE(queue.try_enqueue(8));
  EXPECT_EQ(queue.try_browse(0), queue.try_browse(0));
  EXPECT_EQ(*queue.try_browse(0), 7);
  queue.dequeue(0);
  EXPECT_EQ(*queue.try_browse(0), 8);
}

TEST(SpmcQueue, TheSlowestConsumerDecidesWhatIsFull) {
  SpmcQueue<int> queue(3, 3);
  ASSERT_TRUE(queue.try_enqueue(1));
  ASSERT_TRUE(queue.try_enqueue(2));
  for (const size_t fast : {0, 2}) {
    ASSERT_NE(queue.try_browse(fast), nullptr);
    queue.dequeue(fast);
    EXPECT_FALSE(queue.try_enqueue(3));
  }
  ASSERT_NE(queue.try_browse(1), nullptr);
  queue.dequeue(1);
  EXPECT_TRUE(queue.try_enqueue(3));
  EXPECT_EQ(queue.slowest_dequeued(), 1U);
  EXPECT_EQ(queue.enqueued(), 3U);
}

// Every sequence of operations gives what a plain model (one deque per consumer) gives.
TEST(SpmcQueue, AgreesWithAModelOnRandomOperations) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const size_t slots = 2 + random() % 9;
    const size_t consumers = 1 + random() % 4;
    SpmcQueue<uint32_t> queue(slots, consumers);
    std::vector<std::deque<uint32_t>> model(consumers);
    for (uint32_t step = 0; step < 2000; ++step) {
      const size_t actor = random() % (consumers + 2);
      if (actor >= consumers) {
        const bool room = std::ranges::none_of(model, [&](const auto& q) { return q.size() == slots - 1; });
        ASSERT_EQ(queue.try_enqueue(step), room) << "seed " << seed;
        if (room) {
          for (auto& logical : model) logical.push_back(step);
        }
        continue;
      }
      const uint32_t* item = queue.try_browse(actor);
      ASSERT_EQ(item == nullptr, model[actor].empty()) << "seed " << seed;
      if (item == nullptr) continue;
      ASSERT_EQ(*item, model[actor].front()) << "seed " << seed;
      queue.dequeue(actor);
      model[actor].pop_front();
    }
  }
}

TEST(SpmcQueue, RingsPerBatchAndAtFlush) {
  SpmcQueue<int> queue(257, 1);  // wakes once per (257 - 1) / 4 = 64
  base::Doorbell bell;
  queue.set_doorbell(0, &bell);
  const uint32_t start = bell.ticket();
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(queue.try_enqueue(i));
  EXPECT_EQ(bell.ticket(), start);
  ASSERT_TRUE(queue.try_enqueue(63));
  EXPECT_EQ(bell.ticket(), start + 1);
  queue.flush();  // nothing new
  EXPECT_EQ(bell.ticket(), start + 1);
  ASSERT_TRUE(queue.try_enqueue(64));
  queue.flush();
  EXPECT_EQ(bell.ticket(), start + 2);
}

}  // namespace
}  // namespace thalweg::queue
