#include "apply/reader/write_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "apply/row_key.h"
#include "apply/transaction_frames.h"

namespace thalweg::apply {

using lcr::FrameKind;
using lcr::ValueMark;
using metadata::TableMetadata;

namespace {

using Values = std::vector<lcr::Value>;

// Whether a key exists is another thing than what its row holds: children need only the first.
constexpr uint64_t kExistence = 0x9E3779B97F4A7C15ULL;
// Stands for all that statement handlers may write. As a possible write it orders transactions, but parks none.
constexpr uint64_t kStatements = 0xC2B2AE3D27D4EB4FULL;

bool are_same(std::span<const uint16_t> columns, const Values& values, const Values& other) {
  return std::ranges::all_of(columns, [&](uint16_t column) {
    return values[column].mark == other[column].mark && std::ranges::equal(values[column].bytes, other[column].bytes);
  });
}

// Whether it was not there yet.
bool add_once(std::vector<uint64_t>& hashes, uint64_t hash) {
  if (std::ranges::find(hashes, hash) != hashes.end()) return false;
  hashes.push_back(hash);
  return true;
}

}  // namespace

base::Result<const TableMetadata*> WriteSetBuilder::note_row(Transaction& transaction, const lcr::FrameView& frame) {
  THALWEG_ASSIGN(const TableWriter::Table table, tables_.find(frame.relation(), frame.header().table_version));
  note(transaction, table);
  // An update without an old tuple leaves the keys as they were.
  if (table.metadata->is_referenced &&
      (frame.kind() != FrameKind::update || frame.has(lcr::kOldKey) || frame.has(lcr::kOldRow))) {
    add_once(transaction.referenced_hashes, table.metadata->table_hash);
  }
  return table.metadata;
}

void WriteSetBuilder::note(Transaction& transaction, const TableWriter::Table& table) {
  transaction.tables.add(*table.source);
  const metadata::TableMetadata& metadata = *table.metadata;
  if (!add_once(transaction.table_hashes, metadata.table_hash)) return;
  for (const uint64_t parent : metadata.parent_hashes) add_once(transaction.parent_hashes, parent);
}

base::Result<void> WriteSetBuilder::note_table(Transaction& transaction, const lcr::FrameView& frame) {
  if (frame.kind() != FrameKind::truncate) {
    THALWEG_TRY(note_row(transaction, frame));
    return {};
  }
  for (const base::RelationId relation : frame.truncated_relations()) {
    THALWEG_ASSIGN(const TableWriter::Table table, tables_.latest(relation));
    note(transaction, table);
    if (table.metadata->is_referenced) add_once(transaction.referenced_hashes, table.metadata->table_hash);
  }
  return {};
}

// A full row (or all that an update sent) stands for each of its keys.
void WriteSetBuilder::add_keys(Transaction& transaction, const TableMetadata& table, const Values& values,
                               const Values* other, bool is_partial) {
  for (const metadata::UniqueKey& key : table.unique_keys) {
    // An old tuple that holds the replica identity only says nothing of other columns.
    if (is_partial && !std::ranges::all_of(key.columns, [&](uint16_t c) { return table.columns[c].source_key; }))
      continue;
    const auto hash = hash_key(key.index, table, key.columns, values, key.nulls_collide);
    if (!hash) continue;
    const bool same = other != nullptr && are_same(key.columns, values, *other);
    auto& writes = key.is_exact ? transaction.writes : transaction.possible_writes;
    writes.push_back(*hash);
    if (key.is_referenced && !same) writes.push_back(*hash ^ kExistence);
  }
  if (table.identity_index == 0 && !table.keyless()) {
    const auto hash = hash_key(table.table_hash, table, table.identity, values, true);
    if (hash) transaction.writes.push_back(*hash);
  }
  // Hashes that all rows may share order them; that two are one row their bytes say, for what is parked.
  if (table.identity_is_possible) {
    if (const auto hash = hash_key_bytes(table.identity_index, table.identity, values)) {
      transaction.writes.push_back(*hash);
    }
  }
  for (const metadata::ForeignKey& key : table.foreign_keys) {
    if (is_partial && !std::ranges::all_of(key.columns, [&](uint16_t c) { return table.columns[c].source_key; }))
      continue;
    if (const auto hash = hash_key(key.parent_index, table, key.columns, values, false)) {
      transaction.reads.push_back(*hash ^ kExistence);
    }
  }
}

void WriteSetBuilder::add_row(Transaction& transaction, const TableMetadata& table, FrameKind kind) {
  if (table.keyless() && orders_keyless_) {
    // Inserts commute with each other; whatever looks for a row must see all of them.
    (kind == FrameKind::insert ? transaction.reads : transaction.writes).push_back(table.table_hash);
  }
  const bool has_old = !old_.empty();
  const bool old_is_partial = has_old && table.source.replica_identity != 'f';
  if (kind == FrameKind::update) {
    // Without an old tuple no key of the identity changed.
    add_keys(transaction, table, new_, has_old ? &old_ : &new_, false);
    if (has_old) add_keys(transaction, table, old_, &new_, old_is_partial);
    return;
  }
  if (kind == FrameKind::insert) add_keys(transaction, table, new_, nullptr, false);
  if (kind == FrameKind::remove) add_keys(transaction, table, old_, nullptr, old_is_partial);
}

base::Result<void> WriteSetBuilder::add(Transaction& transaction, const lcr::FrameView& frame) {
  const FrameKind kind = frame.kind();
  if (kind == FrameKind::truncate) {
    transaction.barrier = true;
  } else if (kind != FrameKind::insert && kind != FrameKind::update && kind != FrameKind::remove) {
    return {};
  }
  ++transaction.lcrs;
  transaction.bytes += frame.header().length;
  if (kind == FrameKind::truncate) return note_table(transaction, frame);
  THALWEG_ASSIGN(const TableMetadata* const table, note_row(transaction, frame));
  has_statements_ = has_statements_ || !table->statements.empty();
  frame.old_tuple().read(old_);
  frame.new_tuple().read(new_);
  const size_t columns = table->columns.size();
  if ((!old_.empty() && old_.size() != columns) || (!new_.empty() && new_.size() != columns) ||
      (old_.empty() && new_.empty())) {
    return base::fail(base::ErrorCode::corrupt_frame,
                      fmt::format("a tuple of {} has another number of columns", table->quoted_name));
  }
  add_row(transaction, *table, kind);
  return {};
}

base::Result<void> WriteSetBuilder::build(Transaction& transaction, bool orders_keyless) {
  orders_keyless_ = orders_keyless;
  tables_.look_again();
  if (transaction.spilled) {
    transaction.barrier = true;
    return {};
  }
  has_statements_ = orders_all_;
  TransactionFrames frames(transaction);
  THALWEG_TRY(frames.for_each([&](const lcr::FrameView& frame) { return add(transaction, frame); },
                              []() -> base::Result<void> { return {}; }));
  if (has_statements_ && !transaction.empty()) transaction.possible_writes.push_back(kStatements);
  if (transaction.barrier) {
    transaction.writes.clear();
    transaction.reads.clear();
    transaction.possible_writes.clear();
  }
  return {};
}

}  // namespace thalweg::apply
