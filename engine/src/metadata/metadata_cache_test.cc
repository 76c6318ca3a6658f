#include "metadata/metadata_cache.h"

#include <gtest/gtest.h>

#include "metadata/metadata_samples.h"

namespace thalweg::metadata {
namespace {

constexpr size_t kPlenty = size_t{1} << 30;

const TableMetadata* insert(MetadataCache& cache, uint64_t key, uint64_t generation = 1) {
  auto metadata = sample_metadata(key, generation);
  return cache.insert(key, metadata);
}

TEST(MetadataCache, FindsWhatWasInserted) {
  MetadataCache cache(kPlenty, 4);  // long lists
  for (uint64_t key = 1; key <= 100; ++key) insert(cache, key);
  for (uint64_t key = 1; key <= 100; ++key) {
    const TableMetadata* const found = cache.find(key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->source_id, key);
    EXPECT_EQ(cache.get(key), found);
  }
  EXPECT_EQ(cache.find(101), nullptr);
  EXPECT_EQ(cache.get(101), nullptr);
  const auto counts = cache.counts();
  EXPECT_EQ(counts.hits, 100U);
  EXPECT_EQ(counts.misses, 1U);
  EXPECT_EQ(counts.loads, 100U);
  EXPECT_EQ(counts.tables, 100U);
  EXPECT_EQ(counts.bytes, 100 * heap_bytes(*sample_metadata(1)));
}

TEST(MetadataCache, KeepsInvalidatedMetadataUntilTheLowWatermarkIsAboveTheEntrys) {
  MetadataCache cache(kPlenty);
  cache.set_high_watermark({100});
  const TableMetadata* const held = insert(cache, 1);
  cache.invalidate(1);
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(cache.get(1), nullptr);
  cache.set_high_watermark({200});  // what is handed over later does not count
  cache.purge({100});               // the transaction at 100 has not committed
  EXPECT_TRUE(cache.has_unpurged());
  EXPECT_EQ(held->source_id, 1U);  // under the address sanitizer: not freed
  EXPECT_EQ(cache.counts().purged, 0U);
  cache.purge({101});
  EXPECT_FALSE(cache.has_unpurged());
  EXPECT_EQ(cache.counts().purged, 1U);
  EXPECT_EQ(cache.counts().bytes, 0U);
  EXPECT_EQ(cache.counts().invalidations, 1U);
}

TEST(MetadataCache, PurgesEachEntryByItsOwnHighWatermark) {
  MetadataCache cache(kPlenty);
  for (uint64_t key = 1; key <= 3; ++key) {
    cache.set_high_watermark({key * 10});
    insert(cache, key);
    cache.invalidate(key);
  }
  cache.purge({21});
  EXPECT_EQ(cache.counts().purged, 2U);
  EXPECT_EQ(cache.counts().tables, 1U);
  cache.purge({31});
  EXPECT_EQ(cache.counts().purged, 3U);
}

TEST(MetadataCache, RecyclesEntries) {
  MetadataCache cache(kPlenty, 1);
  for (uint64_t key = 1; key <= 1000; ++key) {
    insert(cache, key);
    if (key > 3) cache.invalidate(key - 3);  // in the middle of the list
    cache.set_high_watermark({key});
    cache.purge({key});
  }
  EXPECT_NE(cache.find(1000), nullptr);
  EXPECT_NE(cache.find(998), nullptr);
  EXPECT_EQ(cache.find(997), nullptr);
  EXPECT_LE(cache.entries(), 5U);
  EXPECT_EQ(cache.counts().tables, 3U);
}

TEST(MetadataCache, AChangeOfTheSchemaHidesAnEntryUntilTheWriterLoadsItAgain) {
  MetadataCache cache(kPlenty);
  insert(cache, 7, 1);
  cache.note_schema_change(8);  // not there: nothing
  cache.note_schema_change(7);
  EXPECT_EQ(cache.find(7), nullptr);
  EXPECT_EQ(cache.counts().invalidations, 0U);
  EXPECT_EQ(cache.get(7), nullptr);  // the writer takes notice
  EXPECT_EQ(cache.counts().invalidations, 1U);
  insert(cache, 7, 2);
  ASSERT_NE(cache.find(7), nullptr);
  EXPECT_EQ(cache.find(7)->generation, 2U);
  cache.purge({1});
  insert(cache, 8);  // recycled: the old flag is gone
  EXPECT_NE(cache.find(8), nullptr);
}

TEST(MetadataCache, ReplacesWhatWasUsedLongestAgo) {
  const size_t entry_bytes = heap_bytes(*sample_metadata(1));
  MetadataCache cache(entry_bytes * 3);
  for (uint64_t key = 1; key <= 3; ++key) insert(cache, key);
  EXPECT_NE(cache.get(1), nullptr);
  insert(cache, 4);
  EXPECT_EQ(cache.find(2), nullptr);
  for (const uint64_t key : {1, 3, 4}) EXPECT_NE(cache.find(key), nullptr) << key;
  EXPECT_EQ(cache.counts().replaced, 1U);
  EXPECT_EQ(cache.counts().bytes, 4 * entry_bytes);  // one of them waits
  cache.purge({1});
  EXPECT_EQ(cache.counts().bytes, 3 * entry_bytes);
  const auto recent = cache.most_recent(2);
  ASSERT_EQ(recent.size(), 2U);
  EXPECT_EQ(recent[0]->source_id, 4U);
  EXPECT_EQ(recent[1]->source_id, 1U);
}

TEST(MetadataCache, KeepsNoMoreThanTwiceItsLimit) {
  const size_t entry_bytes = heap_bytes(*sample_metadata(1));
  MetadataCache cache(entry_bytes * 3);
  cache.set_high_watermark({10});
  for (uint64_t key = 1; key <= 20; ++key) {
    auto metadata = sample_metadata(key);
    const TableMetadata* const cached = cache.insert(key, metadata);
    EXPECT_EQ(cached == nullptr, metadata != nullptr);  // it has it, or we have
    EXPECT_LE(cache.counts().bytes, 7 * entry_bytes);
  }
  EXPECT_EQ(cache.find(20), nullptr);
  cache.purge({11});
  EXPECT_NE(insert(cache, 21), nullptr);
}

TEST(MetadataCache, HoldsOneThatIsLargerThanItsLimit) {
  MetadataCache cache(1);
  EXPECT_NE(insert(cache, 1), nullptr);
  EXPECT_NE(cache.find(1), nullptr);
  EXPECT_EQ(insert(cache, 2), nullptr);  // the first one has to go first
  cache.purge({1});
  EXPECT_NE(insert(cache, 2), nullptr);
  EXPECT_EQ(cache.find(1), nullptr);
}

TEST(TransactionTables, FindsVersionsAndTheLatest) {
  TransactionTables tables;
  const auto table = [](uint32_t relation, uint32_t version) {
    auto made = std::make_shared<SourceTable>();
    made->id = relation * 10 + version;
    made->description.relation = {relation};
    made->description.version = version;
    return made;
  };
  for (const auto& [relation, version] : {std::pair{5, 2}, {3, 1}, {5, 1}, {5, 2}, {9, 4}}) {
    tables.add(table(static_cast<uint32_t>(relation), static_cast<uint32_t>(version)));
  }
  EXPECT_EQ(tables.all().size(), 4U);
  EXPECT_EQ(tables.find({5}, 1)->id, 51U);
  EXPECT_EQ(tables.latest({5})->id, 52U);
  EXPECT_EQ(tables.latest({9})->id, 94U);
  EXPECT_EQ(tables.find({5}, 3), nullptr);
  EXPECT_EQ(tables.latest({4}), nullptr);
  EXPECT_EQ(tables.latest({10}), nullptr);
  EXPECT_EQ(tables.latest({1}), nullptr);
}

}  // namespace
}  // namespace thalweg::metadata
