#include "apply/applier/row_turn.h"

#include <algorithm>

#include "apply/applier/tuple_values.h"
#include "apply/row_key.h"

namespace thalweg::apply {

using lcr::FrameKind;
using lcr::ValueMark;
using metadata::TableMetadata;

namespace {

// Hashes in the write set for a row whose key stays: its key, and once more its key or, for a key that foreign keys
// reference, its existence.
constexpr size_t kHashesOfRow = 2;

// Whether one key alone, that of its identity, orders the table's rows.
bool is_ordered_by_identity(const TableMetadata& table) {
  return table.identity_index != 0 && table.unique_keys.size() == 1 && table.unique_keys.front().is_exact &&
         table.unique_keys.front().index == table.identity_index;
}

bool key_stays(std::span<const uint16_t> columns, const std::vector<lcr::Value>& old,
               const std::vector<lcr::Value>& now) {
  return std::ranges::all_of(columns, [&](uint16_t column) {
    return now[column].mark == ValueMark::unchanged ||
           (now[column].mark == old[column].mark && same_bytes(now[column].bytes, old[column].bytes));
  });
}

}  // namespace

void RowTurns::begin(std::span<const uint64_t> contested) {
  contested_.clear();
  contested_.insert(contested.begin(), contested.end());
  transaction_ = nullptr;
}

void RowTurns::go_on_to(const Transaction& transaction) {
  transaction_ = &transaction;
  next_ = 0;
  shares_ = std::ranges::any_of(transaction.writes, [this](uint64_t hash) { return contested_.contains(hash); });
}

bool RowTurns::was_hashed(const Transaction& transaction, uint64_t hash) {
  const auto rest = std::span(transaction.writes).subspan(std::min(next_, transaction.writes.size()));
  const auto window = rest.first(std::min(rest.size(), kHashesOfRow));
  const auto found = std::ranges::find(window, hash);
  if (found == window.end()) return false;
  next_ += static_cast<size_t>(found - window.begin()) + 1;
  return true;
}

Turn RowTurns::of(const Transaction& transaction, const TableMetadata& table, const lcr::FrameView& frame) {
  if (table.has_triggers || table.is_partitioned) return Turn::after;
  if (table.keyless() && table.unique_keys.empty() && frame.kind() == FrameKind::insert) return Turn::now;
  if (!is_ordered_by_identity(table)) return Turn::after;
  if (transaction_ != &transaction) go_on_to(transaction);
  if (!shares_) return Turn::now;
  const auto& key = table.unique_keys.front();
  const bool has_old = frame.old_tuple().exists();
  const bool has_new = frame.new_tuple().exists();
  if (has_old) frame.old_tuple().read(old_);
  if (has_new) frame.new_tuple().read(new_);
  const size_t columns = table.columns.size();
  if ((has_old && old_.size() != columns) || (has_new && new_.size() != columns)) return Turn::after;
  if (has_old && has_new && !key_stays(key.columns, old_, new_)) return Turn::after;
  const auto hash = hash_key(key.index, table, key.columns, has_old ? old_ : new_, key.nulls_collide);
  if (!hash || !was_hashed(transaction, *hash)) return Turn::after;
  return contested_.contains(*hash) ? Turn::later : Turn::now;
}

}  // namespace thalweg::apply
