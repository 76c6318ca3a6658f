#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "apply/applier/arena.h"
#include "base/error.h"
#include "lcr/bytes.h"
#include "lcr/frame.h"
#include "metadata/oid_rewriter.h"
#include "metadata/table_metadata.h"

// A frame's tuple as values in the arena, ready for the destination.

namespace thalweg::apply {

using Values = lcr::Value*;  // one per column of the table, in the arena

// Fails with corrupt_frame when the tuple has not the table's number of columns. Type oids inside the values are made
// the destination's (in a copy).
inline base::Result<Values> read_values(lcr::TupleView tuple, const metadata::TableMetadata& table, Arena& arena) {
  const size_t count = table.columns.size();
  lcr::ByteReader reader(tuple.bytes());
  if (reader.integer<uint16_t>() != count) {
    return base::fail(base::ErrorCode::corrupt_frame,
                      "a tuple of " + table.quoted_name + " has another number of columns");
  }
  Values values = arena.take_array<lcr::Value>(count);
  for (size_t i = 0; i < count; ++i) {
    values[i].mark = static_cast<lcr::ValueMark>(reader.integer<uint8_t>());
    values[i].bytes = {};
    if (values[i].mark != lcr::ValueMark::binary && values[i].mark != lcr::ValueMark::text) continue;
    values[i].bytes = reader.take(reader.integer<uint32_t>());
    const metadata::TypeNode& type = *table.columns[i].type;
    if (type.embeds_oids && values[i].mark == lcr::ValueMark::binary) {
      std::byte* const copy = arena.take(values[i].bytes.size());
      std::ranges::copy(values[i].bytes, copy);
      THALWEG_TRY(metadata::rewrite_oids(type, {copy, values[i].bytes.size()}));
      values[i].bytes = {copy, values[i].bytes.size()};
    }
  }
  return values;
}

// An update as one of row order: its new values, and the values that find the old row.
struct UpdateValues {
  Values now;
  Values key;
};

inline base::Result<UpdateValues> read_update(const metadata::TableMetadata& table, const lcr::FrameView& frame,
                                              Arena& arena) {
  UpdateValues update{};
  THALWEG_ASSIGN(update.now, read_values(frame.new_tuple(), table, arena));
  update.key = update.now;
  const auto old = frame.old_tuple();
  if (old.exists()) {
    THALWEG_ASSIGN(update.key, read_values(old, table, arena));
    // Key columns that are the same may come as UNCHANGED when they are stored outside the row.
    for (const uint16_t column : table.identity) {
      if (update.now[column].mark == lcr::ValueMark::unchanged) update.now[column] = update.key[column];
    }
  }
  return update;
}

inline bool same_bytes(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

inline bool same_identity(const metadata::TableMetadata& table, const lcr::Value* left, const lcr::Value* right) {
  for (const uint16_t column : table.identity) {
    if (left[column].mark != right[column].mark || !same_bytes(left[column].bytes, right[column].bytes)) return false;
  }
  return true;
}

}  // namespace thalweg::apply
