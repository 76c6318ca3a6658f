// Queue spill, single-threaded for what it does and with threads of random speed for order and completeness; the thread
// sanitizer checks the hand-over of the queue's consumer between its agent and the spiller.

#include "queue/spilling_consumer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "lcr/frame_samples.h"
#include "queue/queue_spiller.h"

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kPatience = 60s;  // only a lost wake-up on a stuck queue can use it up

class SpillingConsumerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_queue_spill_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    space_.emplace(directory_, uint64_t{1} << 30, clock_, 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  base::SystemClock clock_;
  std::optional<spill::SpillSpace> space_;
};

// Frame `sequence`: its LSN is the sequence, its length follows from it.
std::vector<std::byte> frame_of(uint64_t sequence) {
  const uint64_t mixed = sequence * 0x9E3779B97F4A7C15ULL >> 40;
  const size_t bytes = mixed % 1009 == 0 ? 90'000 : mixed % 101 == 0 ? 3000 : mixed % 200;  // some above a block
  return lcr::make_insert_frame({1}, {sequence}, std::string(bytes, static_cast<char>(sequence)));
}

bool put(LcrQueue& queue, uint64_t sequence, std::chrono::microseconds timeout = 0us) {
  const auto frame = frame_of(sequence);
  const auto memory = queue.reserve(frame.size(), timeout);
  if (memory.empty()) return false;
  std::ranges::copy(frame, memory.begin());
  queue.enqueue();
  return true;
}

// The frame's sequence, after a look at all of its bytes.
uint64_t sequence_of(const std::byte* at) {
  const auto frame = lcr::FrameView::trusted(at);
  EXPECT_TRUE(std::ranges::equal(frame.bytes(), frame_of(frame.lsn().value)));
  return frame.lsn().value;
}

void expect_next(SpillingConsumer& consumer, uint64_t sequence) {
  const auto frame = consumer.browse(0us);
  ASSERT_TRUE(frame) << frame.error().message;
  ASSERT_NE(*frame, nullptr) << sequence;
  ASSERT_EQ(sequence_of(*frame), sequence);
  consumer.dequeue();
}

TEST_F(SpillingConsumerTest, ReadsMemoryWhileItKeepsUp) {
  LcrQueue queue({.slots = 16, .memory_bytes = 1 << 20, .consumers = 1});
  SpillingConsumer consumer(queue, 0, *space_);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(put(queue, i));
    EXPECT_FALSE(consumer.move());
    expect_next(consumer, i);
  }
  EXPECT_EQ(consumer.browse(0us).value(), nullptr);
  EXPECT_EQ(consumer.statistics().spilled_frames, 0U);
}

TEST_F(SpillingConsumerTest, FreesTheQueueAndGivesBackInOrder) {
  LcrQueue queue({.slots = 16, .memory_bytes = 1 << 20, .consumers = 2});
  SpillingConsumer slow(queue, 0, *space_);
  uint64_t put_count = 0;
  const auto fast_takes_all = [&] {
    while (queue.browse(1, 0us) != nullptr) queue.dequeue(1);
  };
  while (put_count < 500) {
    ASSERT_TRUE(put(queue, put_count++)) << "the slow consumer holds up the queue";
    fast_takes_all();
    while (slow.move()) {
    }
  }
  auto statistics = slow.statistics();
  EXPECT_TRUE(statistics.spilling);
  EXPECT_EQ(statistics.episodes, 1U);
  EXPECT_EQ(statistics.spilled_frames, 500U);
  EXPECT_EQ(statistics.spilled_lcrs, 500U);
  EXPECT_EQ(statistics.waiting_frames, 500U);
  EXPECT_GT(statistics.use.bytes, 0U);
  EXPECT_LE(statistics.use.bytes, statistics.spilled_bytes);
  EXPECT_EQ(queue.gauges().depth, 0U);
  for (uint64_t i = 0; i < 200; ++i) expect_next(slow, i);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(put(queue, put_count++));  // in memory, behind those on disk
  for (uint64_t i = 200; i < 505; ++i) expect_next(slow, i);
  EXPECT_EQ(slow.browse(0us).value(), nullptr);
  statistics = slow.statistics();
  EXPECT_FALSE(statistics.spilling);
  EXPECT_EQ(statistics.waiting_frames, 0U);
  EXPECT_EQ(statistics.waiting_bytes, 0U);
  EXPECT_EQ(statistics.use.bytes, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  telemetry::ComponentSample sample;
  add_to(sample, statistics);
  EXPECT_EQ(sample.counters.at(0), (std::pair<std::string_view, uint64_t>("spilled_lcrs", 500)));
  while (put_count < 600) {  // once more
    ASSERT_TRUE(put(queue, put_count++));
    fast_takes_all();
    while (slow.move()) {
    }
  }
  EXPECT_EQ(slow.statistics().episodes, 2U);
  for (uint64_t i = 505; i < 600; ++i) expect_next(slow, i);
  EXPECT_EQ(slow.browse(0us).value(), nullptr);
}

TEST_F(SpillingConsumerTest, WhenAllLagTheSourceIsHeldUpInstead) {
  LcrQueue queue({.slots = 16, .memory_bytes = 1 << 20, .consumers = 2});
  SpillingConsumer first(queue, 0, *space_);
  SpillingConsumer second(queue, 1, *space_);
  uint64_t sequence = 0;
  while (put(queue, sequence)) ++sequence;
  EXPECT_FALSE(first.move());
  EXPECT_FALSE(second.move());
  while (second.browse(0us).value() != nullptr) second.dequeue();
  EXPECT_TRUE(first.move());  // now it holds up the second
  EXPECT_FALSE(second.move());
}

TEST_F(SpillingConsumerTest, DoesNotMoveAFrameThatIsLookedAt) {
  LcrQueue queue({.slots = 16, .memory_bytes = 1 << 20, .consumers = 1});
  SpillingConsumer consumer(queue, 0, *space_);
  for (uint64_t i = 0; i < 12; ++i) ASSERT_TRUE(put(queue, i));
  const std::byte* const held = consumer.browse(0us).value();
  EXPECT_FALSE(consumer.move());
  EXPECT_EQ(sequence_of(held), 0U);
  consumer.dequeue();
  EXPECT_TRUE(consumer.move());
  for (uint64_t i = 1; i < 12; ++i) expect_next(consumer, i);
}

TEST_F(SpillingConsumerTest, AFullDiskIsShownAndNothingIsLost) {
  LcrQueue queue({.slots = 64, .memory_bytes = 1 << 20, .consumers = 1});
  SpillingConsumer consumer(queue, 0, *space_, {.label = "queue", .lag_frames_max = 8});
  space_->set_limit(0);
  uint64_t sequence = 0;
  while (put(queue, sequence)) {
    ++sequence;
    while (consumer.move()) {
    }
  }
  ASSERT_EQ(sequence, 63U);  // its first frame is larger than a block and finds no space; the queue is full
  ASSERT_TRUE(consumer.statistics().failure);
  EXPECT_EQ(consumer.statistics().failure->code, base::ErrorCode::spill_limit_reached);
  space_->set_limit(1 << 30);
  EXPECT_TRUE(consumer.move());
  EXPECT_FALSE(consumer.statistics().failure);
  EXPECT_TRUE(put(queue, sequence));
  for (uint64_t i = 0; i <= sequence; ++i) expect_next(consumer, i);
}

TEST_F(SpillingConsumerTest, DiscardThrowsAwayWhatItHoldsAndWhatComes) {
  LcrQueue queue({.slots = 16, .memory_bytes = 1 << 20, .consumers = 1});
  SpillingConsumer consumer(queue, 0, *space_);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(put(queue, i));
    while (consumer.move()) {
    }
  }
  expect_next(consumer, 0);
  consumer.discard();
  for (uint64_t i = 100; i < 200; ++i) {
    consumer.move();
    ASSERT_TRUE(put(queue, i));
  }
  EXPECT_EQ(consumer.statistics().waiting_frames, 0U);
  EXPECT_EQ(space_->use().bytes, 0U);
}

constexpr uint64_t kFrames = 20'000;

// Speeds change every so often, from "as fast as it goes" to "hardly moves".
class Pace {
 public:
  explicit Pace(uint32_t seed) : random_(seed) {}
  void keep() {
    if (left_-- == 0) {
      left_ = 200 + random_() % 2000;
      pause_ = random_() % 3 == 0 ? 5 + random_() % 40 : 0;
    }
    if (pause_ > 0 && random_() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_));
  }

 private:
  std::mt19937 random_;
  uint64_t left_ = 0;
  uint64_t pause_ = 0;
};

TEST_F(SpillingConsumerTest, OrderAndCompletenessAtRandomSpeeds) {
  constexpr size_t kConsumers = 3;
  LcrQueue queue({.slots = 128, .memory_bytes = 256 * 1024, .consumers = kConsumers});
  std::vector<std::unique_ptr<SpillingConsumer>> consumers;
  std::vector<SpillingConsumer*> spilling;
  for (size_t i = 0; i < kConsumers; ++i) {
    consumers.push_back(std::make_unique<SpillingConsumer>(
        queue, i, *space_, SpillingOptions{.label = "queue", .lag_frames_max = 20, .compare_with_others = i != 2}));
    spilling.push_back(consumers.back().get());
  }
  std::vector<uint64_t> seen(kConsumers, 0);
  {
    QueueSpiller spiller({spilling.begin(), spilling.end()});
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kConsumers; ++i) {
      threads.emplace_back([&, i] {
        Pace pace(static_cast<uint32_t>(i) + 1);
        while (seen[i] < kFrames) {
          const auto frame = consumers[i]->browse(kPatience);
          if (!frame || *frame == nullptr || sequence_of(*frame) != seen[i]) return;
          consumers[i]->dequeue();
          ++seen[i];
          pace.keep();
          if (i == 2 && seen[i] % 5000 == 0) std::this_thread::sleep_for(100ms);  // falls far behind
        }
      });
    }
    std::atomic<bool> done{false};
    std::thread sampler([&] {
      while (!done.load(std::memory_order_relaxed)) {
        for (const auto* consumer : spilling) {
          const auto statistics = consumer->statistics();
          EXPECT_LE(statistics.waiting_frames, statistics.spilled_frames);
        }
        std::this_thread::sleep_for(1ms);
      }
    });
    Pace pace(99);
    for (uint64_t i = 0; i < kFrames; ++i) {
      if (!put(queue, i, kPatience)) {
        ADD_FAILURE() << "stuck at " << i;
        break;
      }
      if (i % 32 == 0) queue.flush();
      pace.keep();
    }
    queue.flush();
    for (auto& thread : threads) thread.join();
    done.store(true, std::memory_order_relaxed);
    sampler.join();
  }
  for (const uint64_t count : seen) EXPECT_EQ(count, kFrames);
  EXPECT_GT(consumers[2]->statistics().spilled_frames, 0U);
  EXPECT_EQ(consumers[2]->statistics().waiting_frames, 0U);
  for (auto& consumer : consumers) EXPECT_EQ(consumer->browse(0us).value(), nullptr);
  EXPECT_EQ(space_->use().bytes, 0U);
  EXPECT_FALSE(std::filesystem::exists(directory_) && !std::filesystem::is_empty(directory_));
}

}  // namespace
}  // namespace thalweg::queue
