#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "metadata/metadata_cache.h"
#include "metadata/metadata_samples.h"

// One writer and several readers at full speed; under the address sanitizer it finds what is freed too early, under the
// thread sanitizer what is read without order.

namespace thalweg::metadata {
namespace {

constexpr uint64_t kTables = 24;
constexpr uint64_t kTransactions = 60'000;
constexpr size_t kReaders = 3;
constexpr uint64_t kInFlightMax = 64;

// Transactions 1, 2, 3 ... at those LSNs. Reader r executes r + 1, r + 1 + kReaders, ...
struct Run {
  explicit Run(size_t limit_bytes) : cache(limit_bytes, 4) {}
  MetadataCache cache;
  // Writer: the writer (release). Readers: the readers (acquire): what is handed over.
  std::atomic<uint64_t> handed_over{0};
  // Writer: reader r (release), behind its last committed transaction. Reader: the writer (acquire).
  std::array<std::atomic<uint64_t>, kReaders> committed{};
  std::atomic<uint64_t> found{0};

  void read(size_t reader) {
    std::mt19937_64 random(reader);
    uint64_t hits = 0;
    for (uint64_t lsn = reader + 1; lsn <= kTransactions; lsn += kReaders) {
      while (handed_over.load(std::memory_order_acquire) < lsn) std::this_thread::yield();
      std::array<const TableMetadata*, 4> held{};
      std::array<uint64_t, 4> keys{};
      for (size_t i = 0; i < held.size(); ++i) {
        keys[i] = random() % kTables + 1;
        held[i] = cache.find(keys[i]);
        if (lsn % 64 == 0) cache.note_schema_change(keys[i]);
      }
      for (size_t i = 0; i < held.size(); ++i) {
        if (held[i] == nullptr) continue;
        ++hits;
        ASSERT_EQ(held[i]->source_id, keys[i]);
        ASSERT_EQ(held[i]->columns.size(), 5U);
        ASSERT_EQ(held[i]->columns[4].quoted_name, "e");
      }
      committed[reader].store(lsn, std::memory_order_release);
    }
    committed[reader].store(kTransactions + kReaders, std::memory_order_release);
    found.fetch_add(hits);
  }

  // Every transaction below it has committed.
  uint64_t low_watermark() const {
    uint64_t low = UINT64_MAX;
    for (size_t reader = 0; reader < kReaders; ++reader) {
      const uint64_t last = committed[reader].load(std::memory_order_acquire);
      low = std::min(low, last == 0 ? reader + 1 : last + kReaders);
    }
    return low;
  }

  void write() {
    std::mt19937_64 random(99);
    uint64_t generation = 0;
    for (uint64_t lsn = 1; lsn <= kTransactions; ++lsn) {
      const uint64_t key = random() % kTables + 1;
      if (cache.get(key) == nullptr) {
        auto metadata = sample_metadata(key, ++generation);
        cache.insert(key, metadata);
      }
      if (random() % 16 == 0) cache.invalidate(random() % kTables + 1);
      cache.set_high_watermark({lsn});
      handed_over.store(lsn, std::memory_order_release);
      while (low_watermark() + kInFlightMax < lsn) std::this_thread::yield();
      cache.purge({low_watermark()});
    }
  }
};

void run(size_t limit_bytes) {
  Run run(limit_bytes);
  std::vector<std::thread> readers;
  for (size_t reader = 0; reader < kReaders; ++reader) readers.emplace_back([&run, reader] { run.read(reader); });
  run.write();
  for (auto& reader : readers) reader.join();
  run.cache.purge({run.low_watermark()});
  const auto counts = run.cache.counts();
  EXPECT_FALSE(run.cache.has_unpurged());
  EXPECT_GE(counts.loads, counts.purged + counts.tables);
  EXPECT_GT(counts.invalidations, 0U);
  EXPECT_GT(run.found.load(), kTransactions / 4);
  EXPECT_LE(run.cache.entries(), kTables + 2 * (kInFlightMax + kReaders));  // recycled
}

TEST(MetadataCacheStress, ReadersNeverSeeAnotherTableOrFreedMetadata) { run(size_t{1} << 30); }

TEST(MetadataCacheStress, NorWhileEntriesAreReplaced) { run(heap_bytes(*sample_metadata(1)) * kTables / 2); }

}  // namespace
}  // namespace thalweg::metadata
