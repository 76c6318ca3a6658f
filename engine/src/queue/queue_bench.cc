// SpmcQueue and LcrQueue beside a queue of the same semantics with a mutex and condition variables.
//
// Method: one producer thread, C consumer threads (1, 2, 4), every consumer browses and dequeues every item and sums
// it; the sums are checked. Both pointer queues have 16 384 slots of one 8-byte item. Rounds alternate between the
// queues, so that what else the machine does hits both; the table shows medians. LcrQueue is measured with 160-byte
// frames that the producer writes and the consumers read a word of: what an LCR costs in all. The ratio is SpmcQueue's
// items/s over the mutex queue's; the last line is the geometric mean over the three consumer counts.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "queue/lcr_queue.h"
#include "queue/mutex_queue_bench.h"
#include "queue/spmc_queue.h"

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;

constexpr size_t kSlots = 16'384;
constexpr int kRounds = 5;
constexpr uint64_t kWaitFreeItems = 4'000'000;
constexpr uint64_t kMutexItems = 1'000'000;
constexpr size_t kFrameBytes = 160;
constexpr std::chrono::microseconds kPatience = 10s;

// Items per second of one run: `produce` in this thread, `consume(i)` in a thread for each consumer.
double items_per_second(uint64_t items, size_t consumers, const std::function<void()>& produce,
                        const std::function<uint64_t(size_t)>& consume) {
  std::vector<uint64_t> sums(consumers, 0);
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < consumers; ++i) threads.emplace_back([&, i] { sums[i] = consume(i); });
  produce();
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const uint64_t sum : sums) {
    if (sum != items * (items - 1) / 2) {
      std::fprintf(stderr, "a consumer saw other items than were enqueued\n");
      std::exit(1);
    }
  }
  return static_cast<double>(items) / seconds.count();
}

double run_spmc(size_t consumers) {
  SpmcQueue<uint64_t> queue(kSlots, consumers);
  return items_per_second(
      kWaitFreeItems, consumers,
      [&] {
        for (uint64_t i = 0; i < kWaitFreeItems; ++i) {
          while (!queue.enqueue(i, kPatience)) {
          }
        }
        queue.flush();
      },
      [&](size_t consumer) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < kWaitFreeItems;) {
          const uint64_t* item = queue.browse(consumer, kPatience);
          if (item == nullptr) continue;
          sum += *item;
          queue.dequeue(consumer);
          ++i;
        }
        return sum;
      });
}

double run_mutex(size_t consumers) {
  MutexQueue<uint64_t> queue(kSlots, consumers);
  return items_per_second(
      kMutexItems, consumers,
      [&] {
        for (uint64_t i = 0; i < kMutexItems; ++i) queue.enqueue(i);
      },
      [&](size_t consumer) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < kMutexItems; ++i) {
          sum += *queue.browse(consumer);
          queue.dequeue(consumer);
        }
        return sum;
      });
}

double run_lcr(size_t consumers) {
  LcrQueue queue({.slots = kSlots, .memory_bytes = size_t{64} << 20, .consumers = consumers});
  return items_per_second(
      kWaitFreeItems, consumers,
      [&] {
        for (uint64_t i = 0; i < kWaitFreeItems;) {
          const auto memory = queue.reserve(kFrameBytes, kPatience);
          if (memory.empty()) continue;
          std::memset(memory.data(), 0, memory.size());
          std::memcpy(memory.data(), &i, sizeof(i));
          queue.enqueue();
          ++i;
        }
        queue.flush();
      },
      [&](size_t consumer) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < kWaitFreeItems;) {
          const std::byte* frame = queue.browse(consumer, kPatience);
          if (frame == nullptr) continue;
          uint64_t value = 0;
          std::memcpy(&value, frame, sizeof(value));
          sum += value;
          queue.dequeue(consumer);
          ++i;
        }
        return sum;
      });
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run() {
  std::printf(
      "method: %u hardware threads; 1 producer, every consumer sees every item; %zu slots; %llu items a run\n"
      "(mutex %llu); medians of %d alternating rounds; lcr queue with %zu-byte frames written and read\n\n",
      std::thread::hardware_concurrency(), kSlots, static_cast<unsigned long long>(kWaitFreeItems),
      static_cast<unsigned long long>(kMutexItems), kRounds, kFrameBytes);
  std::printf("%9s %16s %16s %8s %16s %14s %14s\n", "consumers", "spmc items/s", "mutex items/s", "ratio",
              "lcr queue LCR/s", "spmc ns/item", "lcr ns/LCR");
  double product = 1;
  const std::vector<size_t> consumer_counts{1, 2, 4};
  for (const size_t consumers : consumer_counts) {
    std::vector<double> spmc, mutex, lcr;
    for (int round = 0; round < kRounds; ++round) {
      spmc.push_back(run_spmc(consumers));
      mutex.push_back(run_mutex(consumers));
      lcr.push_back(run_lcr(consumers));
    }
    const double ratio = median(spmc) / median(mutex);
    product *= ratio;
    std::printf("%9zu %16.0f %16.0f %8.2f %16.0f %14.1f %14.1f\n", consumers, median(spmc), median(mutex), ratio,
                median(lcr), 1e9 / median(spmc), 1e9 / median(lcr));
    std::fflush(stdout);
  }
  std::printf("queue ratio: %.2f\n", std::pow(product, 1.0 / static_cast<double>(consumer_counts.size())));
  return 0;
}

}  // namespace
}  // namespace thalweg::queue

int main() { return thalweg::queue::run(); }
