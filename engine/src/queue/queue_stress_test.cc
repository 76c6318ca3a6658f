// Producer and consumers on threads of their own, with random pauses, small queues and small memory, so that full,
// empty, wrap-around and oversize come up all the time. Checks order, completeness and contents; the thread sanitizer
// checks the memory orders.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "queue/lcr_queue.h"
#include "queue/spmc_queue.h"

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kItems = 60'000;
#else
constexpr uint64_t kItems = 400'000;
#endif

// Long enough that only a lost wake-up on a stuck queue can use it up.
constexpr std::chrono::microseconds kPatience = 60s;

void pause_now_and_then(std::mt19937& random) {
  const auto dice = random() % 4096;
  if (dice == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  if (dice < 32) std::this_thread::yield();
}

struct Shape {
  size_t slots;
  size_t consumers;
  bool blocking;  // waits, or polls with the wait-free forms
};

class SpmcStress : public testing::TestWithParam<Shape> {};

struct Item {
  uint64_t sequence = 0;
  uint64_t check = 0;
};

TEST_P(SpmcStress, EveryConsumerSeesEveryItemInOrder) {
  const Shape shape = GetParam();
  // With few slots nearly every item is a hand-over between sleeping threads: fewer items make as many of those.
  const uint64_t items = shape.slots < 16 ? kItems / 16 : kItems;
  SpmcQueue<Item> queue(shape.slots, shape.consumers);
  std::vector<std::thread> threads;
  std::vector<uint64_t> wrong(shape.consumers, 0);
  for (size_t consumer = 0; consumer < shape.consumers; ++consumer) {
    threads.emplace_back([&, consumer] {
      std::mt19937 random(static_cast<uint32_t>(consumer) + 1);
      for (uint64_t expected = 0; expected < items; ++expected) {
        const Item* item = nullptr;
        if (shape.blocking) {
          item = queue.browse(consumer, kPatience);
        } else {
          while ((item = queue.try_browse(consumer)) == nullptr) std::this_thread::yield();
        }
        if (item == nullptr || item->sequence != expected) {
          ++wrong[consumer];
          return;
        }
        pause_now_and_then(random);  // while the item is held: it must stay unchanged
        if (item->check != ~expected) ++wrong[consumer];
        queue.dequeue(consumer);
      }
    });
  }
  std::mt19937 random(0);
  for (uint64_t i = 0; i < items; ++i) {
    const Item item{.sequence = i, .check = ~i};
    if (shape.blocking) {
      ASSERT_TRUE(queue.enqueue(item, kPatience));
      if (random() % 64 == 0) queue.flush();
    } else {
      while (!queue.try_enqueue(item)) std::this_thread::yield();
    }
    pause_now_and_then(random);
  }
  queue.flush();
  for (auto& thread : threads) thread.join();
  for (const uint64_t count : wrong) EXPECT_EQ(count, 0U);
  EXPECT_EQ(queue.slowest_dequeued(), items);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SpmcStress,
                         testing::Values(Shape{2, 1, true}, Shape{2, 2, true}, Shape{7, 1, false}, Shape{7, 4, true},
                                         Shape{64, 1, true}, Shape{64, 2, false}, Shape{1024, 4, true}));

class LcrStress : public testing::TestWithParam<size_t> {};

// A frame's length and contents follow from its sequence.
size_t frame_bytes(uint64_t sequence) {
  const uint64_t mixed = sequence * 0x9E3779B97F4A7C15ULL >> 40;
  if (mixed % 1009 == 0) return 40'000;  // above the whole budget
  if (mixed % 101 == 0) return 8 * (600 + mixed % 300);
  return 40 + 8 * (mixed % 30);
}

TEST_P(LcrStress, FramesArriveWholeAndUnchanged) {
  const size_t consumers = GetParam();
  LcrQueue queue({.slots = 100, .memory_bytes = 16'384, .consumers = consumers});
  std::vector<uint64_t> wrong(consumers, 0);
  std::vector<std::thread> threads;
  const uint64_t frames = kItems / 4;
  for (size_t consumer = 0; consumer < consumers; ++consumer) {
    threads.emplace_back([&, consumer] {
      std::mt19937 random(static_cast<uint32_t>(consumer) + 7);
      for (uint64_t expected = 0; expected < frames; ++expected) {
        const std::byte* frame = queue.browse(consumer, kPatience);
        if (frame == nullptr) {
          ++wrong[consumer];
          return;
        }
        pause_now_and_then(random);
        const size_t bytes = frame_bytes(expected);
        for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
          uint64_t word = 0;
          std::memcpy(&word, frame + at, sizeof(word));
          if (word != expected + at) ++wrong[consumer];
        }
        queue.dequeue(consumer);
      }
    });
  }
  std::atomic<bool> done{false};
  std::thread sampler([&] {  // gauges() at any time, from any thread
    while (!done.load(std::memory_order_relaxed)) {
      const auto gauges = queue.gauges();
      EXPECT_LE(gauges.depth, gauges.enqueued);
      std::this_thread::sleep_for(1ms);
    }
  });
  std::mt19937 random(5);
  for (uint64_t i = 0; i < frames; ++i) {
    const auto memory = queue.reserve(frame_bytes(i), kPatience);
    ASSERT_FALSE(memory.empty());
    for (size_t at = 0; at < memory.size(); at += sizeof(uint64_t)) {
      const uint64_t word = i + at;
      std::memcpy(memory.data() + at, &word, sizeof(word));
    }
    queue.enqueue();
    if (random() % 32 == 0) queue.flush();
    pause_now_and_then(random);
  }
  queue.flush();
  for (auto& thread : threads) thread.join();
  done.store(true, std::memory_order_relaxed);
  sampler.join();
  for (const uint64_t count : wrong) EXPECT_EQ(count, 0U);
  EXPECT_EQ(queue.gauges().depth, 0U);
  EXPECT_EQ(queue.gauges().depth_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Consumers, LcrStress, testing::Values(1, 2, 4));

}  // namespace
}  // namespace thalweg::queue
