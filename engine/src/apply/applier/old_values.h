#pragma once

#include <algorithm>
#include <ranges>

#include "apply/applier/arena.h"
#include "apply/applier/statements.h"
#include "apply/applier/tuple_values.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"

// Old values that a change tells of its row, for a comparison with the destination's row (docs/decisions/conflicts.md).

namespace thalweg::apply {

// The columns to compare: those that are known.
inline ColumnMask known_columns(const metadata::TableMetadata& table, const lcr::Value* old) {
  ColumnMask known;
  for (const uint16_t column : table.compared) {
    if (old[column].mark != lcr::ValueMark::unchanged) known.set(column);
  }
  return known;
}

// The old identity with the old values, UNCHANGED where they are not known; null where nothing is compared. `key`: the
// update's or remove's old tuple as values, or the new one where it has none.
inline const lcr::Value* old_values(const metadata::TableMetadata& table, const lcr::FrameView& frame, Values key,
                                    Arena& arena) {
  if (table.compared.empty()) return nullptr;
  const bool is_whole = frame.has(lcr::kOldRow);
  // A partition may identify its rows otherwise than the whole table: it has told less than the table says.
  if (!is_whole && table.source.replica_identity == 'f') return nullptr;
  const auto is_sent = [&](uint16_t column) {
    return key[column].mark != lcr::ValueMark::unchanged && (is_whole || table.columns[column].source_key);
  };
  if (std::ranges::none_of(table.compared, is_sent)) return nullptr;
  // A partition's key alone, below a table with REPLICA IDENTITY FULL, looks like a whole row: with NULL in all others.
  const auto is_known = [&](size_t column) {
    return key[column].mark != lcr::ValueMark::null &&
           std::ranges::find(table.identity, column) == table.identity.end();
  };
  if (is_whole && std::ranges::none_of(std::views::iota(size_t{0}, table.columns.size()), is_known)) return nullptr;
  if (is_whole) return key;
  // An old tuple with the key alone has NULL in the other columns. Without an old tuple, the key is as it was.
  Values known = arena.take_array<lcr::Value>(table.columns.size());
  for (size_t column = 0; column < table.columns.size(); ++column) {
    known[column] =
        table.columns[column].source_key ? key[column] : lcr::Value{.mark = lcr::ValueMark::unchanged, .bytes = {}};
  }
  return known;
}

}  // namespace thalweg::apply
