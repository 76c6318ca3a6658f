#include "metadata/metadata_cache.h"

#include <bit>
#include <cassert>

namespace thalweg::metadata {

namespace {
// A walk starts again only when the writer recycled what it stood on; so often in a row that does not happen.
constexpr int kWalksMax = 16;
}  // namespace

MetadataCache::MetadataCache(size_t limit_bytes, size_t slots)
    : limit_bytes_(limit_bytes), mask_(std::bit_ceil(slots) - 1), slots_(std::bit_ceil(slots)) {}

MetadataCache::~MetadataCache() {
  for (Entry& entry : entries_) delete entry.metadata.load(std::memory_order_relaxed);
}

MetadataCache::Found MetadataCache::search(uint64_t key) const {
  const std::atomic<Entry*>& slot = slot_of(key);
  for (int walk = 0; walk < kWalksMax; ++walk) {
    const Entry* entry = slot.load(std::memory_order_acquire);
    while (entry != nullptr) {
      if (!entry->valid.load(std::memory_order_acquire)) break;
      const uint64_t version = entry->version.load(std::memory_order_acquire);
      const Entry* const next = entry->next.load(std::memory_order_acquire);
      const uint64_t found = entry->key.load(std::memory_order_acquire);
      const TableMetadata* const metadata = entry->metadata.load(std::memory_order_acquire);
      if (!entry->valid.load(std::memory_order_acquire) || entry->version.load(std::memory_order_acquire) != version)
        break;
      if (found == key) return {.entry = entry, .metadata = metadata};
      if (&slot_of(found) != &slot) break;  // recycled since the list pointed at it: another slot's list
      entry = next;
    }
    if (entry == nullptr) break;  // the end of the list
  }
  return {};
}

const TableMetadata* MetadataCache::find(uint64_t key) const {
  const Found found = search(key);
  if (found.entry == nullptr || found.entry->schema_evolved.load(std::memory_order_acquire)) return nullptr;
  return found.metadata;
}

// Should the entry be recycled for another table just now, that one is loaded once too often.
void MetadataCache::note_schema_change(uint64_t key) {
  const Found found = search(key);
  if (found.entry != nullptr) {
    const_cast<Entry*>(found.entry)->schema_evolved.store(true, std::memory_order_release);
  }
}

MetadataCache::Entry* MetadataCache::own(uint64_t key) {
  // The writer sees its own stores in order: a plain walk.
  for (Entry* entry = slot_of(key).load(std::memory_order_relaxed); entry != nullptr;
       entry = entry->next.load(std::memory_order_relaxed)) {
    if (entry->key.load(std::memory_order_relaxed) == key) return entry;
  }
  return nullptr;
}

const TableMetadata* MetadataCache::get(uint64_t key) {
  Entry* const entry = own(key);
  if (entry != nullptr && entry->schema_evolved.load(std::memory_order_acquire)) {
    invalidations_.add();
    retire(*entry);
  } else if (entry != nullptr) {
    hits_.add();
    recent_.splice(recent_.begin(), recent_, entry->recent);
    return entry->metadata.load(std::memory_order_relaxed);
  }
  misses_.add();
  return nullptr;
}

const TableMetadata* MetadataCache::insert(uint64_t key, std::unique_ptr<const TableMetadata>& metadata) {
  assert(own(key) == nullptr);
  loads_.add();
  const size_t bytes = heap_bytes(*metadata);
  while (!recent_.empty() && live_bytes_ + bytes > limit_bytes_) {
    replaced_.add();
    retire(*recent_.back());
  }
  if (retired_bytes_ > limit_bytes_) return nullptr;
  if (free_list_.empty()) free_list_.push_back(&entries_.emplace_back());
  Entry& entry = *free_list_.back();
  free_list_.pop_back();
  entry.bytes = bytes;
  entry.recent = recent_.insert(recent_.begin(), &entry);
  live_bytes_ += bytes;
  bytes_.set(live_bytes_ + retired_bytes_);
  tables_.set(tables_.get() + 1);

  std::atomic<Entry*>& slot = const_cast<std::atomic<Entry*>&>(slot_of(key));
  entry.key.store(key, std::memory_order_release);
  entry.next.store(slot.load(std::memory_order_relaxed), std::memory_order_release);
  entry.metadata.store(metadata.get(), std::memory_order_release);
  entry.schema_evolved.store(false, std::memory_order_release);
  entry.version.store(++version_, std::memory_order_release);
  entry.valid.store(true, std::memory_order_release);
  slot.store(&entry, std::memory_order_release);
  return metadata.release();
}

void MetadataCache::invalidate(uint64_t key) {
  Entry* const entry = own(key);
  if (entry == nullptr) return;
  invalidations_.add();
  retire(*entry);
}

void MetadataCache::retire(Entry& entry) {
  auto* link = const_cast<std::atomic<Entry*>*>(&slot_of(entry.key.load(std::memory_order_relaxed)));
  while (link->load(std::memory_order_relaxed) != &entry) link = &link->load(std::memory_order_relaxed)->next;
  link->store(entry.next.load(std::memory_order_relaxed), std::memory_order_release);
  entry.valid.store(false, std::memory_order_release);
  entry.high_watermark = high_watermark_;
  recent_.erase(entry.recent);
  purge_list_.push_back(&entry);
  live_bytes_ -= entry.bytes;
  retired_bytes_ += entry.bytes;
}

void MetadataCache::purge(base::Lsn low_watermark) {
  std::erase_if(purge_list_, [&](Entry* entry) {
    if (low_watermark <= entry->high_watermark) return false;
    delete entry->metadata.load(std::memory_order_relaxed);
    entry->metadata.store(nullptr, std::memory_order_release);
    purged_.add();
    retired_bytes_ -= entry->bytes;
    tables_.set(tables_.get() - 1);
    free_list_.push_back(entry);
    return true;
  });
  bytes_.set(live_bytes_ + retired_bytes_);
}

std::vector<const TableMetadata*> MetadataCache::most_recent(size_t count) const {
  std::vector<const TableMetadata*> tables;
  for (const Entry* entry : recent_) {
    if (tables.size() == count) break;
    tables.push_back(entry->metadata.load(std::memory_order_relaxed));
  }
  return tables;
}

MetadataCache::Counts MetadataCache::counts() const {
  Counts counts{.hits = hits_.get(),
                .misses = misses_.get(),
                .loads = loads_.get(),
                .invalidations = invalidations_.get(),
                .purged = purged_.get(),
                .replaced = replaced_.get(),
                .bytes = bytes_.get(),
                .tables = tables_.get()};
  for (const ReaderCounts& reader : reader_counts_) {
    counts.hits += reader.hits.get();
    counts.misses += reader.misses.get();
    counts.loads += reader.loads.get();
  }
  return counts;
}

}  // namespace thalweg::metadata
