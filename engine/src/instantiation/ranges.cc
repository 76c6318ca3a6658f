#include "instantiation/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "instantiation/ddl.h"

namespace thalweg::instantiation {
namespace {

// Below this many rows per range the sample would leave ranges of very different sizes.
constexpr double kSampleRowsPerRange = 2000;
constexpr double kSampleShareMax = 0.5;  // above it, reading the whole key is as cheap

std::string key_row(const pg::Connection& connection, const TableShape& table, const std::vector<std::string>& key,
                    const KeyValues& values) {
  std::string row;
  for (size_t i = 0; i < key.size(); ++i) {
    row += fmt::format("{}{}::{}", i ? ", " : "", connection.quote_literal(values[i]), table.column(key[i])->type);
  }
  return "(" + row + ")";
}

}  // namespace

KeyColumns key_columns(const TableShape& table) {
  KeyColumns columns;
  const ConstraintShape* const primary = table.primary_key();
  if (!primary) return columns;
  for (const std::string& name : primary->columns) {
    const ColumnShape& column = *table.column(name);
    columns.push_back(fmt::format("{} {} {}", pg::quote_identifier(name), column.type, column.collation));
  }
  return columns;
}

std::string read_from(const TableShape& table) { return (table.kind == 'p' ? "" : "ONLY ") + table.name.quoted(); }

base::Result<int64_t> estimate_rows(pg::Connection& connection, const TableShape& table) {
  if (table.rows_estimated >= 0) return static_cast<int64_t>(table.rows_estimated);
  THALWEG_ASSIGN(pg::Rows rows, connection.query(fmt::format("SELECT count(*) FROM {}", read_from(table))));
  return rows.integer(0, 0);
}

base::Result<std::vector<KeyRange>> split(pg::Connection& connection, const TableShape& table, int64_t rows,
                                          int64_t range_rows) {
  const ConstraintShape* primary = table.primary_key();
  if (!primary || rows <= range_rows) return std::vector<KeyRange>(1);
  // A bound's type would have to be the one whose operators order the key, and the session would have to find them.
  THALWEG_ASSIGN(const pg::Rows foreign,
                 connection.query("SELECT EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_opclass o ON "
                                  "o.oid = ANY (i.indclass) WHERE i.indrelid = $1::oid AND i.indisprimary AND "
                                  "o.opcnamespace <> 'pg_catalog'::regnamespace)",
                                  {std::to_string(table.oid)}));
  if (foreign.boolean(0, 0)) return std::vector<KeyRange>(1);

  double wanted = std::ceil(static_cast<double>(rows) / static_cast<double>(range_rows));
  double share = wanted * kSampleRowsPerRange / static_cast<double>(rows);
  bool sampled = share < kSampleShareMax;
  double every =
      std::max(1.0, std::floor((sampled ? share * static_cast<double>(rows) : static_cast<double>(rows)) / wanted));

  std::string keys = column_list(primary->columns);
  std::string texts;
  for (const std::string& column : primary->columns) {
    texts += (texts.empty() ? "" : ", ") + pg::quote_identifier(column) + "::text";
  }
  // Boundaries are keys of the table itself, in its own order and collation.
  THALWEG_ASSIGN(
      pg::Rows found,
      connection.query(fmt::format(
          "SELECT {} FROM (SELECT {}, row_number() OVER (ORDER BY {}) AS \"thalweg row\" FROM {}{}) s "
          "WHERE \"thalweg row\" > 1 AND \"thalweg row\" % {} = 1 % {} ORDER BY \"thalweg row\"",
          texts, keys, keys, read_from(table), sampled ? fmt::format(" TABLESAMPLE SYSTEM ({:.6f})", share * 100) : "",
          static_cast<int64_t>(every), static_cast<int64_t>(every))));
  std::vector<KeyRange> ranges(1);
  for (size_t i = 0; i < found.size(); ++i) {
    KeyValues boundary;
    for (size_t c = 0; c < primary->columns.size(); ++c) boundary.emplace_back(found.text(i, c));
    ranges.back().upper = boundary;
    ranges.push_back({.lower = std::move(boundary), .upper = {}});
  }
  return ranges;
}

base::Result<std::string> range_condition(const pg::Connection& connection, const TableShape& table,
                                          const KeyRange& range, const std::string& row_filter) {
  if (!range.lower && !range.upper) return row_filter.empty() ? "" : " WHERE " + row_filter;
  const ConstraintShape* const primary = table.primary_key();
  const auto fits = [&](const std::optional<KeyValues>& bound) {
    return !bound || bound->size() == primary->columns.size();
  };
  if (!primary || !fits(range.lower) || !fits(range.upper)) {
    return base::fail(
        base::ErrorCode::destination_table_differs,
        fmt::format("The ranges of {} that thalweg.copy_range has are of another primary key.", table.name.quoted()));
  }
  const std::vector<std::string>& key = primary->columns;
  std::string row = "(" + column_list(key) + ")";
  std::string condition = " WHERE ";
  if (range.lower) condition += row + " >= " + key_row(connection, table, key, *range.lower);
  if (range.lower && range.upper) condition += " AND ";
  if (range.upper) condition += row + " < " + key_row(connection, table, key, *range.upper);
  if (!row_filter.empty()) condition += " AND (" + row_filter + ")";
  return condition;
}

}  // namespace thalweg::instantiation
