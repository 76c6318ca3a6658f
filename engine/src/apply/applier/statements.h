#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "lcr/frame.h"
#include "metadata/table_metadata.h"

// The SQL of apply, as text with parameters.

namespace thalweg::apply {

inline constexpr size_t kColumnsMax = 1'600;  // PostgreSQL's MaxHeapAttributeNumber

// A set of columns of a table.
struct ColumnMask {
  std::array<uint64_t, kColumnsMax / 64> words{};
  void set(size_t column) { words[column / 64] |= uint64_t{1} << column % 64; }
  bool has(size_t column) const { return (words[column / 64] >> column % 64 & 1) != 0; }
  bool any() const { return *this != ColumnMask{}; }
  bool operator==(const ColumnMask&) const = default;
};

enum class StatementKind : uint8_t {
  insert,
  update,      // columns that came, but not the identity
  update_key,  // the identity too
  remove,
  upsert,           // catch-up: insert or overwrite
  remove_if_moved,  // catch-up of a key update: the old row, where the new one is there already
  set_insert,       // from unnest(): one array a column
  set_update,
  set_remove,
  handler,  // of a user
};

// Where a parameter's value comes from.
struct ParameterSource {
  uint16_t column;
  bool from_key;  // the row's old identity (or old row, for keyless tables), else its new values
};

struct Statement {
  std::string sql;
  std::vector<base::TypeId> types;
  std::vector<ParameterSource> parameters;
  bool is_checked = false;  // fails by itself (division by zero) when it touches no row
};

// `came`: columns with a new value; used by update, update_key, set_update. `compared`: columns in which the row has to
// have its old values to be found; used by those and by remove, set_remove. `checked` turns an update or remove into a
// statement that fails when it finds no row: for pipelines that end in a commit.
Statement make_statement(const metadata::TableMetadata& table, StatementKind kind, const ColumnMask& came,
                         const ColumnMask& compared, bool checked);

// Reads what the destination has: the rows where `by` are as in the row's old identity; with none the rows that are
// like the old row as a whole. Result: for each column its place, its value as text (NULL or not), cut at
// `characters_max`, the whole text's bytes and hash, and in all of them the number of such rows. The values are of one
// of those; no row at all where there is none.
Statement make_lookup(const metadata::TableMetadata& table, std::span<const uint16_t> by, size_t characters_max);
// Locks the row of that identity until the transaction ends. Result: for each of `compared`, in their order, whether it
// has its old value; no row where it is not there. Not for tables without a key.
Statement make_lock(const metadata::TableMetadata& table, const ColumnMask& compared);
// How SQL writes what make_lookup gives of a value: `value` is an expression of type text.
std::string shown_text(const std::string& value, size_t characters_max);

// COPY ... FROM STDIN (FORMAT binary) of all written columns.
std::string make_copy(const metadata::TableMetadata& table);

// The columns that came; a tuple without UNCHANGED gives all of them.
ColumnMask columns_that_came(const metadata::TableMetadata& table, const lcr::Value* values);

}  // namespace thalweg::apply
