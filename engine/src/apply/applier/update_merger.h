#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lcr/frame.h"
#include "metadata/table_metadata.h"
#include "telemetry/agent.h"

// Rows that a group updates again and again reach the data layer once or twice (Salinas-Monteagudo and Muñoz-Escoí
// 2008, section 2.7). The first update of a row goes where it stands; a further one is held, and dropped when the next
// one has all that it has. Everything else keeps its order. docs/decisions/merged-updates.md says why what overtakes a
// held update cannot tell.

namespace thalweg::apply {

struct PendingFrame {
  const metadata::TableMetadata* table;
  lcr::FrameView frame;
};

// Owner: one applier. Keeps pointers to frames and metadata, which must live until clear() or release().
class UpdateMerger {
 public:
  // `merged`: updates that are left out because a later change of the row makes them unnecessary.
  explicit UpdateMerger(telemetry::Counter& merged) : merged_(merged) {}

  // Returns the frames to send to the data layer now, in this order; valid until the next call. `frame` may be held for
  // later.
  std::span<const PendingFrame> take(const metadata::TableMetadata& table, const lcr::FrameView& frame);
  // Returns all held frames; afterwards every row counts as not seen. Valid until the next call.
  std::span<const PendingFrame> release();
  // Whether updates of the table, in any of its versions, are held.
  bool holds(const metadata::TableMetadata& table) const;
  void clear();

 private:
  // A row that has been updated. `frame` is its newest update that came here.
  struct Entry {
    uint64_t hash;
    lcr::FrameView frame;
    uint32_t table;  // index into tables_
    bool held;
  };
  struct Table {
    const metadata::TableMetadata* metadata;
    bool merges;
    uint64_t updates = 0;
    uint64_t repeats = 0;
    uint64_t held = 0;
  };

  Table& table_for(const metadata::TableMetadata& metadata);
  void take_update(Table& table, const lcr::FrameView& frame);
  void hold(Table& table, Entry& entry, const lcr::FrameView& frame);
  void forget_held(Table& table, lcr::TupleView identity, bool send);
  void give_up(Table& table);
  void release_all();
  void forget_rows();
  // The entry of the row whose identity columns are `values`, or null.
  Entry* find(const Table& table, uint64_t hash, const std::vector<lcr::Value>& values);
  void add(Table& table, uint64_t hash, const lcr::FrameView& frame);
  void grow();
  uint32_t index_of(const Table& table) const { return static_cast<uint32_t>(&table - tables_.data()); }

  telemetry::Counter& merged_;
  std::vector<Table> tables_;  // of this group, by their first row
  size_t last_ = 0;            // index of the table of the frame before
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing: index + 1 into entries_, 0 free; at most half full
  std::vector<PendingFrame> out_;
  std::vector<lcr::Value> values_, other_;  // of one frame
};

}  // namespace thalweg::apply
