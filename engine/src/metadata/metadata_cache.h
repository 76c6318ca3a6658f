#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "metadata/table_metadata.h"
#include "telemetry/agent.h"

// Wong et al. 2009, section V: one copy of each table's metadata for all appliers, in a hash table with one writer and
// readers without latches. Atomic loads and stores of words only; no compare-and-swap, no reference counts.
//
// Lifetime of an entry (figures 8 and 12):
//
//   insert ──▶ valid ──(schema changed, superseded, or replaced)──▶ invalid, on the purge list with the
//      ▲                                                            high watermark of that moment
//      └── free list ◀──(low watermark above it: metadata freed)──────────┘
//
// Why a reader may use an entry that it found: a reader executes a transaction that has not committed, so
//  low watermark <= its commit LSN <= high watermark at invalidation <= the entry's high watermark,
// and the entry's metadata is not freed until the reader's transaction has committed. A transaction handed over after
// the invalidation cannot find the entry: handing over happens after it.
//
// Figure 13's check holds only in this order of the writer's stores: recycling an entry stores key, next and metadata,
// then the version, then the valid bit, each with release; a reader loads valid, version, the fields, valid, version,
// each with acquire. A reader that loaded one new field sees valid cleared or the new version. (With the version stored
// before the fields, as figure 10 can be read, a reader between the two could take old fields for new ones.) Other than
// in figure 10 an entry leaves its list before its valid bit is cleared, so that a writer that is preempted in between
// makes nobody walk in circles.

namespace thalweg::metadata {

// Thread-safe: any thread that executes an uncommitted transaction may call find and note_schema_change, any thread at
// all counts; everything else belongs to the writer.
class MetadataCache {
 public:
  static constexpr size_t kReadersMax = 64;

  // `limit_bytes` bounds the metadata that can be found. Metadata that waits to be purged may take as much again;
  // beyond that, insert keeps nothing and gives the metadata back. `slots`: of the hash table, a power of two.
  explicit MetadataCache(size_t limit_bytes, size_t slots = 1024);
  ~MetadataCache();  // no reader is left
  MetadataCache(const MetadataCache&) = delete;
  MetadataCache& operator=(const MetadataCache&) = delete;

  // --- readers
  // `key`: SourceTable::id. nullptr: not there, or its destination has changed; load it from there. Valid until the
  // transaction that the caller executes has committed.
  const TableMetadata* find(uint64_t key) const;
  // The destination's table differs from the metadata: find no longer returns it, and the writer invalidates it.
  void note_schema_change(uint64_t key);
  // Counters of reader `number`, which alone writes them, on cache lines of their own.
  struct alignas(64) ReaderCounts {
    telemetry::Counter hits, misses, loads;
  };
  ReaderCounts& reader_counts(size_t number) { return reader_counts_[number % kReadersMax]; }

  // --- the writer
  // As find, and counts as a use for the replacement. An entry whose destination has changed is invalidated.
  const TableMetadata* get(uint64_t key);
  // `key` must not be there. Replaces the entries used longest ago while there is too much. nullptr: no memory, since
  // too much waits to be purged; then `metadata` is as it was.
  const TableMetadata* insert(uint64_t key, std::unique_ptr<const TableMetadata>& metadata);
  void invalidate(uint64_t key);  // nothing where it is not there
  // The highest commit LSN handed to readers. Before it is handed over.
  void set_high_watermark(base::Lsn high_watermark) { high_watermark_ = high_watermark; }
  // Every transaction with a commit LSN below `low_watermark` has committed.
  void purge(base::Lsn low_watermark);
  bool has_unpurged() const { return !purge_list_.empty(); }
  // The metadata used most recently, at most `count`. Valid until the next purge.
  std::vector<const TableMetadata*> most_recent(size_t count) const;

  size_t entries() const { return entries_.size(); }  // made so far; free ones are recycled

  // --- anybody
  std::atomic<uint64_t>& generations() { return generations_; }  // for loaders
  struct Counts {
    uint64_t hits, misses, loads, invalidations, purged, replaced;
    uint64_t bytes, tables;  // now, with what waits to be purged
  };
  Counts counts() const;

 private:
  struct Entry {
    // Writer: the writer, in the order that is given above. Readers: find.
    std::atomic<uint64_t> key{0};
    std::atomic<Entry*> next{nullptr};
    std::atomic<const TableMetadata*> metadata{nullptr};
    std::atomic<uint64_t> version{0};
    std::atomic<bool> valid{false};
    // Writers: anybody sets it, the writer clears it before the entry is valid (release). Readers: all (acquire).
    std::atomic<bool> schema_evolved{false};
    // The writer's own.
    size_t bytes = 0;
    base::Lsn high_watermark;
    std::list<Entry*>::iterator recent;
  };
  const std::atomic<Entry*>& slot_of(uint64_t key) const { return slots_[hash(key) & mask_]; }
  static uint64_t hash(uint64_t key) { return (key * 0x9E3779B97F4A7C15ULL) >> 32; }
  struct Found {
    const Entry* entry = nullptr;
    const TableMetadata* metadata = nullptr;
  };
  Found search(uint64_t key) const;
  Entry* own(uint64_t key);
  void retire(Entry& entry);

  const size_t limit_bytes_;
  const uint64_t mask_;
  std::vector<std::atomic<Entry*>> slots_;
  std::deque<Entry> entries_;  // never shrinks: a reader may stand on any of them
  std::vector<Entry*> free_list_;
  std::vector<Entry*> purge_list_;
  std::list<Entry*> recent_;  // valid ones, used last first
  std::atomic<uint64_t> generations_{0};
  uint64_t version_ = 0;  // the paper's GlobalVersionNo
  base::Lsn high_watermark_;
  size_t live_bytes_ = 0;
  size_t retired_bytes_ = 0;
  telemetry::Counter hits_, misses_, loads_, invalidations_, purged_, replaced_, bytes_, tables_;
  std::array<ReaderCounts, kReadersMax> reader_counts_;
};

}  // namespace thalweg::metadata
