#include "apply/applier/update_merger.h"

#include <algorithm>

#include "apply/applier/tuple_values.h"
#include "metadata/key_hash.h"

namespace thalweg::apply {

using lcr::FrameKind;
using lcr::FrameView;
using lcr::ValueMark;
using metadata::TableMetadata;

namespace {

constexpr size_t kSlotsMin = 64;
constexpr size_t kSlotsPerRowMax = 64;  // more are given up
// A table of whose first so many updates fewer than one in sixteen meets a row again is left alone for the rest of the
// group.
constexpr uint64_t kTrialUpdates = 4096;
constexpr uint64_t kRepeatsWorth = 16;

// Whether rows of the table can meet only in its own index, and no trigger looks on.
bool can_merge(const TableMetadata& table) {
  return table.identity_index != 0 && !table.has_triggers && table.unique_keys.size() == 1 &&
         table.unique_keys.front().index == table.identity_index;
}

// The tuple whose identity columns name the row before the change.
lcr::TupleView identity_tuple(const FrameView& frame) {
  const auto old = frame.old_tuple();
  return old.exists() ? old : frame.new_tuple();
}

bool is_value(const lcr::Value& value) { return value.mark == ValueMark::binary || value.mark == ValueMark::text; }

bool has_identity(const TableMetadata& table, const std::vector<lcr::Value>& values) {
  return values.size() == table.columns.size() &&
         std::ranges::all_of(table.identity, [&](uint16_t column) { return is_value(values[column]); });
}

uint64_t hash_of(const TableMetadata& table, const std::vector<lcr::Value>& values) {
  uint64_t hash = table.table_hash;
  for (const uint16_t column : table.identity) {
    hash = metadata::mix_hash(hash, metadata::hash_bytes(values[column].bytes, 0));
  }
  return hash;
}

}  // namespace

UpdateMerger::Table& UpdateMerger::table_for(const TableMetadata& metadata) {
  if (last_ < tables_.size() && tables_[last_].metadata == &metadata) return tables_[last_];
  const auto known = std::ranges::find(tables_, &metadata, &Table::metadata);
  if (known == tables_.end()) {
    bool merges = can_merge(metadata);
    for (Table& other : tables_) {
      if (other.metadata->destination != metadata.destination) continue;
      // This is the table in another version. A row may come in both, so neither is merged any more.
      give_up(other);
      merges = false;
    }
    tables_.push_back({.metadata = &metadata, .merges = merges});
    last_ = tables_.size() - 1;
  } else {
    last_ = static_cast<size_t>(known - tables_.begin());
  }
  return tables_[last_];
}

std::span<const PendingFrame> UpdateMerger::take(const TableMetadata& metadata, const FrameView& frame) {
  out_.clear();
  Table& table = table_for(metadata);
  if (metadata.has_triggers) {
    release_all();
  } else if (table.merges && frame.kind() == FrameKind::update) {
    take_update(table, frame);
    return out_;
  } else if (table.held > 0 && frame.kind() == FrameKind::remove) {
    forget_held(table, frame.old_tuple(), false);
  }
  out_.push_back({.table = &metadata, .frame = frame});
  return out_;
}

void UpdateMerger::take_update(Table& table, const FrameView& frame) {
  const TableMetadata& metadata = *table.metadata;
  if (table.updates == kTrialUpdates && table.repeats * kRepeatsWorth < table.updates) give_up(table);
  ++table.updates;
  const auto old = frame.old_tuple();
  frame.new_tuple().read(values_);
  bool same_row = table.merges && values_.size() == metadata.columns.size();
  if (same_row && old.exists()) {
    old.read(other_);
    same_row = has_identity(metadata, other_);
    for (size_t i = 0; same_row && i < metadata.identity.size(); ++i) {
      const uint16_t column = metadata.identity[i];
      // Key columns that are the same may come as UNCHANGED when they are stored outside the row.
      if (values_[column].mark == ValueMark::unchanged) values_[column] = other_[column];
    }
    same_row = same_row && same_identity(metadata, values_.data(), other_.data());
  }
  if (!same_row || !has_identity(metadata, values_)) {
    if (table.held > 0) forget_held(table, identity_tuple(frame), true);
    out_.push_back({.table = &metadata, .frame = frame});
    return;
  }
  const uint64_t hash = hash_of(metadata, values_);
  Entry* const entry = find(table, hash, values_);
  if (entry == nullptr) {
    add(table, hash, frame);
    out_.push_back({.table = &metadata, .frame = frame});
    return;
  }
  ++table.repeats;
  hold(table, *entry, frame);
}

void UpdateMerger::hold(Table& table, Entry& entry, const FrameView& frame) {
  if (entry.held) {
    frame.new_tuple().read(values_);
    entry.frame.new_tuple().read(other_);
    bool has_all = true;
    for (size_t column = 0; column < values_.size(); ++column) {
      has_all =
          has_all && (values_[column].mark != ValueMark::unchanged || other_[column].mark == ValueMark::unchanged);
    }
    if (has_all) {
      merged_.add();
    } else {
      out_.push_back({.table = table.metadata, .frame = entry.frame});
    }
  } else {
    ++table.held;
    entry.held = true;
  }
  entry.frame = frame;
}

// The row's held update, if there is one, is sent or, where the row goes anyway, dropped.
void UpdateMerger::forget_held(Table& table, lcr::TupleView identity, bool send) {
  identity.read(values_);
  if (!has_identity(*table.metadata, values_)) {
    release_all();
    return;
  }
  Entry* const entry = find(table, hash_of(*table.metadata, values_), values_);
  if (entry == nullptr || !entry->held) return;
  if (send) {
    out_.push_back({.table = table.metadata, .frame = entry->frame});
  } else {
    merged_.add();
  }
  entry->held = false;
  --table.held;
}

void UpdateMerger::give_up(Table& table) {
  const uint32_t index = index_of(table);
  for (Entry& entry : entries_) {
    if (entry.table != index || !entry.held) continue;
    out_.push_back({.table = table.metadata, .frame = entry.frame});
    entry.held = false;
  }
  table.held = 0;
  table.merges = false;
}

void UpdateMerger::forget_rows() {
  if (entries_.empty()) return;
  // After a large group: a small one shall not pay for its slots.
  if (entries_.size() * kSlotsPerRowMax < slots_.size()) slots_.resize(kSlotsMin);
  entries_.clear();
  std::ranges::fill(slots_, 0U);
}

void UpdateMerger::release_all() {
  for (const Entry& entry : entries_) {
    if (entry.held) out_.push_back({.table = tables_[entry.table].metadata, .frame = entry.frame});
  }
  forget_rows();
  for (Table& table : tables_) table.held = 0;
}

std::span<const PendingFrame> UpdateMerger::release() {
  out_.clear();
  release_all();
  tables_.clear();
  return out_;
}

bool UpdateMerger::holds(const TableMetadata& metadata) const {
  return std::ranges::any_of(
      tables_, [&](const Table& t) { return t.held > 0 && t.metadata->destination == metadata.destination; });
}

void UpdateMerger::clear() {
  forget_rows();
  tables_.clear();
  out_.clear();
}

UpdateMerger::Entry* UpdateMerger::find(const Table& table, uint64_t hash, const std::vector<lcr::Value>& values) {
  if (slots_.empty()) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash != hash || entry.table != index_of(table)) continue;
    identity_tuple(entry.frame).read(other_);
    if (same_identity(*table.metadata, other_.data(), values.data())) return &entry;
  }
  return nullptr;
}

void UpdateMerger::grow() {
  slots_.assign(std::max(kSlotsMin, slots_.size() * 2), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void UpdateMerger::add(Table& table, uint64_t hash, const FrameView& frame) {
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0) slot = (slot + 1) & mask;
  entries_.push_back({.hash = hash, .frame = frame, .table = index_of(table), .held = false});
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}

}  // namespace thalweg::apply
