#include "queue/lcr_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;

// Frames here are filled with their number: the queue looks at nothing but their kind, for its counters.
bool put(LcrQueue& queue, size_t bytes, int number) {
  const auto memory = queue.reserve(bytes, 0us);
  if (memory.empty()) return false;
  EXPECT_EQ(memory.size(), bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 8, 0U);
  std::memset(memory.data(), number, memory.size());
  queue.enqueue();
  return true;
}

void expect_front(LcrQueue& queue, size_t consumer, size_t bytes, int number) {
  const std::byte* frame = queue.browse(consumer, 0us);
  ASSERT_NE(frame, nullptr);
  for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(std::to_integer<int>(frame[i]), number) << "byte " << i;
}

TEST(LcrQueue, EveryConsumerSeesEveryFrame) {
  LcrQueue queue({.slots = 4, .memory_bytes = 4096, .consumers = 2});
  ASSERT_TRUE(put(queue, 48, 1));
  ASSERT_TRUE(put(queue, 56, 2));
  for (const size_t consumer : {0, 1}) {
    expect_front(queue, consumer, 48, 1);
    expect_front(queue, consumer, 48, 1);  // browse does not remove
    queue.dequeue(consumer);
    expect_front(queue, consumer, 56, 2);
    queue.dequeue(consumer);
    EXPECT_EQ(queue.browse(consumer, 0us), nullptr);
  }
}

TEST(LcrQueue, FullOfSlotsUntilTheSlowestConsumerDequeues) {
  LcrQueue queue({.slots = 4, .memory_bytes = 4096, .consumers = 2});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(put(queue, 40, i));
  EXPECT_FALSE(put(queue, 40, 3));
  EXPECT_TRUE(queue.reserve(40, 1ms).empty());
  ASSERT_NE(queue.browse(0, 0us), nullptr);
  queue.dequeue(0);
  EXPECT_FALSE(put(queue, 40, 3));
  ASSERT_NE(queue.browse(1, 0us), nullptr);
  queue.dequeue(1);
  EXPECT_TRUE(put(queue, 40, 3));
}

TEST(LcrQueue, TheProducerTakesWhatTheAgentWouldBeWokenFor) {
  LcrQueue queue({.slots = 16, .memory_bytes = 4096, .consumers = 1});
  base::Doorbell bell;
  queue.set_doorbell(0, &bell);
  bool takes = true;
  int asked = 0;
  queue.set_producer_work([&] {
    ++asked;
    if (!takes) return false;
    while (queue.browse(0, 0us) != nullptr) queue.dequeue(0);
    return true;
  });
  const uint32_t silent = bell.ticket();
  ASSERT_TRUE(put(queue, 40, 1));
  queue.flush();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(queue.gauges().depth, 0U);
  EXPECT_EQ(bell.ticket(), silent);
  queue.flush();  // nothing came
  EXPECT_EQ(asked, 1);
  takes = false;
  ASSERT_TRUE(put(queue, 40, 2));
  queue.flush();
  EXPECT_EQ(asked, 2);
  EXPECT_NE(bell.ticket(), silent);
  expect_front(queue, 0, 40, 2);
  queue.set_producer_work({});
  queue.dequeue(0);
  ASSERT_TRUE(put(queue, 40, 3));
  queue.flush();
  EXPECT_EQ(asked, 2);
}

TEST(LcrQueue, ArenaWrapsWithoutTouchingFramesInUse) {
  // 1000 bytes and frames of 248: the fifth does not fit behind the fourth and starts over at 0.
  LcrQueue queue({.slots = 64, .memory_bytes = 1000, .consumers = 1});
  int next = 0;
  int first = 0;
  for (int round = 0; round < 200; ++round) {
    const size_t bytes = 40 + 8 * (static_cast<size_t>(round) % 27);  // 40 to 248
    while (!put(queue, bytes, next % 251)) {
      const int number = first % 251;
      const std::byte* frame = queue.browse(0, 0us);
      ASSERT_NE(frame, nullptr);
      const size_t length = 40 + 8 * (static_cast<size_t>(first) % 27);
      for (size_t i = 0; i < length; ++i) ASSERT_EQ(std::to_integer<int>(frame[i]), number);
      queue.dequeue(0);
      ++first;
    }
    ++next;
  }
  EXPECT_GT(first, 150);
  while (first < next) {
    expect_front(queue, 0, 40 + 8 * (static_cast<size_t>(first) % 27), first % 251);
    queue.dequeue(0);
    ++first;
  }
  EXPECT_EQ(queue.gauges().depth_bytes, 0U);
}

TEST(LcrQueue, WhenAllIsFreeAtAFlushTheArenaStartsOver) {
  LcrQueue queue({.slots = 8, .memory_bytes = 4096, .consumers = 1});
  const auto put_and_flush = [&](size_t bytes, int number) {
    ASSERT_TRUE(put(queue, bytes, number));
    queue.flush();
  };
  const auto take = [&](size_t bytes, int number) {
    expect_front(queue, 0, bytes, number);
    const std::byte* const place = queue.browse(0, 0us);
    queue.dequeue(0);
    queue.flush();
    return place;
  };
  put_and_flush(1000, 1);
  const std::byte* const beginning = take(1000, 1);
  put_and_flush(1000, 2);
  put_and_flush(1000, 3);
  EXPECT_EQ(take(1000, 2), beginning);
  EXPECT_NE(take(1000, 3), beginning);
  put_and_flush(2000, 4);  // memory of its own
  put_and_flush(1000, 5);
  take(2000, 4);
  put_and_flush(1000, 6);
  EXPECT_EQ(take(1000, 5), beginning);
  ASSERT_FALSE(queue.reserve(1000, 0us).empty());
  EXPECT_NE(take(1000, 6), beginning);  // what is reserved stays where it is
  queue.enqueue();
  put_and_flush(1000, 8);
  EXPECT_NE(queue.browse(0, 0us), nullptr);
  queue.dequeue(0);
  take(1000, 8);
  put_and_flush(1000, 9);
  EXPECT_EQ(take(1000, 9), beginning);
}

TEST(LcrQueue, OversizeFramesCountInTheBudget) {
  LcrQueue queue({.slots = 64, .memory_bytes = 4096, .consumers = 1});
  ASSERT_TRUE(put(queue, 2000, 1));  // above a quarter: memory of its own
  ASSERT_TRUE(put(queue, 512, 2));
  EXPECT_EQ(queue.gauges().depth_bytes, 2512U);
  EXPECT_FALSE(put(queue, 2000, 3));  // 4512 bytes
  expect_front(queue, 0, 2000, 1);
  queue.dequeue(0);
  ASSERT_TRUE(put(queue, 2000, 3));
  expect_front(queue, 0, 512, 2);
  queue.dequeue(0);
  expect_front(queue, 0, 2000, 3);
}

TEST(LcrQueue, AFrameAboveTheWholeBudgetPassesAlone) {
  LcrQueue queue({.slots = 64, .memory_bytes = 4096, .consumers = 1});
  ASSERT_TRUE(put(queue, 64, 1));
  EXPECT_FALSE(put(queue, 80'000, 2));  // not while something is in use
  expect_front(queue, 0, 64, 1);
  queue.dequeue(0);
  ASSERT_TRUE(put(queue, 80'000, 2));
  EXPECT_FALSE(put(queue, 64, 3));
  EXPECT_FALSE(put(queue, 80'000, 3));
  expect_front(queue, 0, 80'000, 2);
  queue.dequeue(0);
  EXPECT_TRUE(put(queue, 64, 3));
}

TEST(LcrQueue, AReservationIsGivenUpByTheNext) {
  LcrQueue queue({.slots = 8, .memory_bytes = 1024, .consumers = 1});
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(queue.reserve(200, 0us).empty());
    ASSERT_FALSE(queue.reserve(900, 0us).empty());
  }
  ASSERT_TRUE(put(queue, 240, 1));
  expect_front(queue, 0, 240, 1);
  EXPECT_EQ(queue.gauges().enqueued, 1U);
  EXPECT_EQ(queue.gauges().depth_bytes, 240U);
}

TEST(LcrQueue, GaugesFollowTheSlowestConsumer) {
  LcrQueue queue({.slots = 8, .memory_bytes = 4096, .consumers = 2});
  ASSERT_TRUE(put(queue, 40, 1));
  ASSERT_TRUE(put(queue, 80, 2));
  ASSERT_NE(queue.browse(0, 0us), nullptr);
  queue.dequeue(0);
  auto gauges = queue.gauges();
  EXPECT_EQ(gauges.enqueued, 2U);
  EXPECT_EQ(gauges.enqueued_lcrs, 0U);  // TABLE and BEGIN
  EXPECT_EQ(gauges.enqueued_bytes, 120U);
  EXPECT_EQ(gauges.depth, 2U);
  EXPECT_EQ(gauges.depth_bytes, 120U);
  EXPECT_EQ(gauges.capacity, 7U);
  EXPECT_EQ(gauges.memory_bytes, 4096U);
  ASSERT_NE(queue.browse(1, 0us), nullptr);
  queue.dequeue(1);
  gauges = queue.gauges();
  EXPECT_EQ(gauges.depth, 1U);
  EXPECT_EQ(gauges.depth_bytes, 80U);
}

TEST(LcrQueue, CountsChangesApartFromMarks) {
  using lcr::FrameKind;
  LcrQueue queue({.slots = 16, .memory_bytes = 4096, .consumers = 1});
  for (const FrameKind kind :
       {FrameKind::table, FrameKind::begin, FrameKind::insert, FrameKind::update, FrameKind::remove,
        FrameKind::truncate, FrameKind::commit, FrameKind::abort, FrameKind::progress}) {
    ASSERT_TRUE(put(queue, 40, static_cast<int>(kind)));
  }
  EXPECT_EQ(queue.gauges().enqueued, 9U);
  EXPECT_EQ(queue.gauges().enqueued_lcrs, 4U);
}

TEST(LcrQueue, RingsAnAgentsOwnDoorbell) {
  LcrQueue queue({.slots = 8, .memory_bytes = 4096, .consumers = 1});
  base::Doorbell bell;
  queue.set_doorbell(0, &bell);
  const uint32_t seen = bell.ticket();
  ASSERT_TRUE(put(queue, 40, 1));
  queue.flush();
  EXPECT_NE(bell.ticket(), seen);
}

}  // namespace
}  // namespace thalweg::queue
