#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Big tables are copied in ranges of their primary key: the unit of parallel work and of resumption.

namespace thalweg::instantiation {

// Key values as text, in key order.
using KeyValues = std::vector<std::string>;

// The columns that a key's bounds depend on: each one's name, type and collation, in key order. Empty without a key.
using KeyColumns = std::vector<std::string>;
KeyColumns key_columns(const TableShape& table);

// Half open: lower <= key < upper. No bound: from the start, to the end.
struct KeyRange {
  std::optional<KeyValues> lower;
  std::optional<KeyValues> upper;
};

// The table's rows under the connection's snapshot, by statistics where there are any, else counted.
base::Result<int64_t> estimate_rows(pg::Connection& connection, const TableShape& table);

// Ranges of about `range_rows` rows each that cover every key, over the connection's snapshot. One range for a table
// that is small, has no primary key, or one that operators of an extension order.
base::Result<std::vector<KeyRange>> split(pg::Connection& connection, const TableShape& table, int64_t rows,
                                          int64_t range_rows);

// WHERE clause with a leading space, or empty for everything. `row_filter`: SQL that is TRUE for the rows to take;
// empty: all. Fails where the bounds are of another key.
base::Result<std::string> range_condition(const pg::Connection& connection, const TableShape& table,
                                          const KeyRange& range, const std::string& row_filter);

// FROM item for reading the table: partitioned tables with their partitions, others without their heirs.
std::string read_from(const TableShape& table);

}  // namespace thalweg::instantiation
