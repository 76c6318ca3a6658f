// The metadata cache beside the same table behind a shared mutex (Wong et al. 2009, figure 15: apply parallelism
// against latch contention).
//
// Method: 64 tables of five columns in a cache of 1024 slots. R reader threads (1 to 8) each look a table up per LCR
// and read a word of its metadata, checked; meanwhile one writer invalidates, purges and loads a table a thousand times
// a second, as after changes of the schema. Both methods run the same walk over the same lists; the second one takes
// std::shared_mutex around it, shared for a look-up and exclusive for a change. Rounds alternate between the two, so
// that what else the machine does hits both; the table shows medians. No processor is pinned. The ratio is latch-free
// look-ups/s over the shared mutex's, all readers together; the last line is the geometric mean over the counts of
// readers.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "metadata/metadata_cache.h"
#include "metadata/metadata_samples.h"

namespace thalweg::metadata {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kTables = 64;
constexpr int kRounds = 5;
constexpr auto kRoundTime = 300ms;
constexpr auto kChangePause = 1ms;
constexpr int kLookUpsPerLook = 512;  // between looks at the clock's end: LCRs of one transaction

// No lock at all.
struct LatchFree {
  static std::shared_lock<std::shared_mutex> read(LatchFree&) { return {}; }
  static std::unique_lock<std::shared_mutex> write(LatchFree&) { return {}; }
};

struct SharedMutex {
  std::shared_mutex mutex;
  static std::shared_lock<std::shared_mutex> read(SharedMutex& lock) { return std::shared_lock(lock.mutex); }
  static std::unique_lock<std::shared_mutex> write(SharedMutex& lock) { return std::unique_lock(lock.mutex); }
};

struct alignas(64) Reader {
  // Writer: the reader (release), ahead of its look-ups: the position of the transaction that it executes. Reader: the
  // writer (acquire).
  std::atomic<uint64_t> position{1};
  uint64_t look_ups = 0;
  uint64_t missed = 0;
};

struct Outcome {
  double look_ups_per_second;
  double missed_share;
};

template <typename Lock>
Outcome run(size_t readers) {
  MetadataCache cache(size_t{1} << 30);
  Lock lock;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> high_watermark{1};
  for (uint64_t key = 1; key <= kTables; ++key) {
    auto metadata = sample_metadata(key);
    cache.insert(key, metadata);
  }
  std::vector<Reader> states(readers);
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (size_t r = 0; r < readers; ++r) {
    threads.emplace_back([&, r] {
      Reader& state = states[r];
      uint64_t key = r * 7;
      uint64_t look_ups = 0;
      uint64_t missed = 0;
      while (!done.load(std::memory_order_relaxed)) {
        state.position.store(high_watermark.load(std::memory_order_acquire), std::memory_order_release);
        for (int i = 0; i < kLookUpsPerLook; ++i) {
          key = key % kTables + 1;
          const auto held = Lock::read(lock);
          const TableMetadata* const table = cache.find(key);
          if (table == nullptr) {
            ++missed;
          } else if (table->source_id != key) {
            std::fprintf(stderr, "a reader saw another table than it asked for\n");
            std::exit(1);
          }
        }
        look_ups += kLookUpsPerLook;
      }
      state.look_ups = look_ups;
      state.missed = missed;
    });
  }
  uint64_t changed = 0;
  while (std::chrono::steady_clock::now() - start < kRoundTime) {
    std::this_thread::sleep_for(kChangePause);
    auto metadata = sample_metadata(changed % kTables + 1);
    const auto held = Lock::write(lock);
    cache.set_high_watermark({high_watermark.load(std::memory_order_relaxed)});
    cache.invalidate(changed % kTables + 1);
    cache.insert(changed % kTables + 1, metadata);
    high_watermark.store(high_watermark.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    uint64_t low_watermark = UINT64_MAX;
    for (const Reader& state : states) {
      low_watermark = std::min(low_watermark, state.position.load(std::memory_order_acquire));
    }
    cache.purge({low_watermark});
    ++changed;
  }
  done.store(true, std::memory_order_relaxed);
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  double look_ups = 0;
  double missed = 0;
  for (const Reader& state : states) {
    look_ups += static_cast<double>(state.look_ups);
    missed += static_cast<double>(state.missed);
  }
  return {.look_ups_per_second = look_ups / seconds.count(), .missed_share = missed / look_ups};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run_all() {
  std::printf(
      "method: %u hardware threads, not pinned, shared by readers and writer (with more readers than threads their\n"
      "latches are also held by readers that do not run); %llu tables; one change of a table a millisecond; medians "
      "of\n"
      "%d alternating rounds of %lld ms; look-ups of all readers together\n\n",
      std::thread::hardware_concurrency(), static_cast<unsigned long long>(kTables), kRounds,
      static_cast<long long>(kRoundTime.count()));
  std::printf("%8s %20s %20s %8s %14s %14s %12s\n", "readers", "latch-free look-ups/s", "shared mutex", "ratio",
              "free ns/thread", "mutex ns/thread", "missed ppm");
  double product = 1;
  const std::vector<size_t> reader_counts{1, 2, 3, 4, 5, 6, 7, 8};
  const double processors = std::max(1U, std::thread::hardware_concurrency());
  for (const size_t readers : reader_counts) {
    std::vector<double> free, mutex, missed;
    for (int round = 0; round < kRounds; ++round) {
      const Outcome latch_free = run<LatchFree>(readers);
      free.push_back(latch_free.look_ups_per_second);
      missed.push_back(latch_free.missed_share);
      mutex.push_back(run<SharedMutex>(readers).look_ups_per_second);
    }
    const double ratio = median(free) / median(mutex);
    product *= ratio;
    const double running = std::min(static_cast<double>(readers), processors);
    std::printf("%8zu %20.0f %20.0f %8.2f %14.1f %14.1f %12.2f\n", readers, median(free), median(mutex), ratio,
                1e9 * running / median(free), 1e9 * running / median(mutex), 1e6 * median(missed));
    std::fflush(stdout);
  }
  std::printf("metadata ratio: %.2f\n", std::pow(product, 1.0 / static_cast<double>(reader_counts.size())));
  return 0;
}

}  // namespace
}  // namespace thalweg::metadata

int main() { return thalweg::metadata::run_all(); }
