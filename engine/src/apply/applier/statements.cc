#include "apply/applier/statements.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace thalweg::apply {

namespace {

using metadata::Column;
using metadata::TableMetadata;

class Builder {
 public:
  Builder(const TableMetadata& table, bool arrays) : table_(table), arrays_(arrays) {}

  // "$3"
  std::string parameter(uint16_t column, bool from_key) {
    const auto& type = *table_.columns[column].type;
    statement_.types.push_back(arrays_ ? type.array_type : type.value_type);
    statement_.parameters.push_back({.column = column, .from_key = from_key});
    return fmt::format("${}", statement_.parameters.size());
  }

  std::string equal_key(bool from_key) { return equal(table_.identity, from_key); }

  std::string equal(std::span<const uint16_t> columns, bool from_key) {
    std::string condition;
    for (const uint16_t column : columns) {
      condition += fmt::format("{}{} = {}", condition.empty() ? "" : " AND ", table_.columns[column].quoted_name,
                               parameter(column, from_key));
    }
    return condition;
  }

  // Finds the old row.
  std::string equal_identity() {
    if (!table_.keyless()) return equal_key(true);
    const std::string condition = same_row();
    const char* const place = table_.is_partitioned ? "(tableoid, ctid)" : "ctid";
    const char* const places = table_.is_partitioned ? "tableoid, ctid" : "ctid";
    return fmt::format("{} = (SELECT {} FROM {} WHERE {} LIMIT 1)", place, places, table_.own_rows(), condition);
  }

  // The columns of `compared` are as in the old row: `before` stands before each.
  std::string unchanged(const ColumnMask& compared, const char* before = " AND ") {
    std::string condition;
    for (const uint16_t column : table_.compared) {
      if (!compared.has(column)) continue;
      const Column& described = table_.columns[column];
      condition += before + unchanged_value(described, described.quoted_name, parameter(column, true));
    }
    return condition;
  }

  // `name` of the destination's column, `old` of the source's value before the change: expressions.
  static std::string unchanged_value(const Column& column, const std::string& name, const std::string& old) {
    const metadata::TypeNode& type = *column.type;
    const std::string stored = column.stored_as.empty() ? old : fmt::format("{}::{}", old, column.stored_as);
    if (column.exact_equality || is_number(type)) return fmt::format("{} IS NOT DISTINCT FROM {}", name, stored);
    if (type.send.empty()) return fmt::format("{}::text IS NOT DISTINCT FROM {}::text", name, stored);
    const std::string cast = type.is_domain ? "::" + type.value_name : "";
    return fmt::format("{0}({1}{2}) IS NOT DISTINCT FROM {0}({3})", type.send, name, cast, stored);
  }

  // Like the old row in everything.
  std::string same_row() {
    std::string condition;
    for (uint16_t column = 0; column < table_.columns.size(); ++column) {
      if (!table_.columns[column].written) continue;
      condition += fmt::format("{}{}", condition.empty() ? "" : " AND ",
                               same_value(table_.columns[column], parameter(column, true)));
    }
    return condition;
  }

  Statement finish(std::string sql) {
    statement_.sql = std::move(sql);
    return std::move(statement_);
  }

 private:
  // Exact for every type, and NULL is the same as NULL. Where `=` is exact an index may serve; elsewhere external forms
  // are compared: not every type has an operator, and equal stored images are no test either (one value may be stored
  // in several ways).
  static std::string same_value(const Column& column, const std::string& parameter) {
    const std::string& name = column.quoted_name;
    const metadata::TypeNode& type = *column.type;
    if (column.exact_equality) return fmt::format("({0} = {1} OR ({0} IS NULL AND {1} IS NULL))", name, parameter);
    // The send functions are those of base types; those of enums and the like do not take a domain over one.
    const std::string cast = type.is_domain ? "::" + type.value_name : "";
    if (type.send.empty()) return fmt::format("{}::text IS NOT DISTINCT FROM {}::text", name, parameter);
    return fmt::format("{0}({1}{2}) IS NOT DISTINCT FROM {0}({3})", type.send, name, cast, parameter);
  }

  // Equal numbers may be written in several ways (1.0 and 1.00, 0 and -0): no difference between two rows.
  static bool is_number(const metadata::TypeNode& type) {
    constexpr std::array<uint32_t, 3> kTypes{700, 701, 1700};  // real, double precision, numeric
    return std::ranges::find(kTypes, type.value_type.value) != kTypes.end();
  }

  const TableMetadata& table_;
  const bool arrays_;
  Statement statement_;
};

bool in_identity(const TableMetadata& table, uint16_t column) {
  return std::ranges::find(table.identity, column) != table.identity.end();
}

// The columns that an update assigns; never none, so that the statement still shows whether the row is there.
std::vector<uint16_t> assigned_columns(const TableMetadata& table, const ColumnMask& came, bool with_identity) {
  std::vector<uint16_t> columns;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (!came.has(column) || !table.columns[column].written) continue;
    if (table.columns[column].identity_always && !in_identity(table, column)) continue;
    if (with_identity || !in_identity(table, column)) columns.push_back(column);
  }
  return columns.empty() ? table.identity : columns;
}

// Columns that cannot be assigned, and so must be as they came: a row where they are not is a conflict, not a
// difference that nobody sees.
std::vector<uint16_t> required_columns(const TableMetadata& table, const ColumnMask& came) {
  std::vector<uint16_t> columns;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (came.has(column) && table.columns[column].identity_always && !in_identity(table, column))
      columns.push_back(column);
  }
  return columns;
}

std::string written_columns(const TableMetadata& table) {
  std::string list;
  for (const Column& column : table.columns) {
    if (column.written) list += fmt::format("{}{}", list.empty() ? "" : ", ", column.quoted_name);
  }
  return list;
}

Statement make_insert(const TableMetadata& table, bool upsert) {
  Builder builder(table, false);
  std::string values;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].written) values += (values.empty() ? "" : ", ") + builder.parameter(column, false);
  }
  std::string sql = values.empty() ? fmt::format("INSERT INTO {} DEFAULT VALUES", table.quoted_name)
                                   : fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})",
                                                 table.quoted_name, written_columns(table), values);
  if (upsert && table.identity_index != 0) {
    std::string key;
    for (const uint16_t column : table.identity) {
      key += fmt::format("{}{}", key.empty() ? "" : ", ", table.columns[column].quoted_name);
    }
    std::string assignments;
    for (const Column& column : table.columns) {
      if (!column.written || column.identity_always) continue;
      assignments +=
          fmt::format("{}{} = excluded.{}", assignments.empty() ? "" : ", ", column.quoted_name, column.quoted_name);
    }
    sql += assignments.empty() ? fmt::format(" ON CONFLICT ({}) DO NOTHING", key)
                               : fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}", key, assignments);
  }
  return builder.finish(std::move(sql));
}

Statement make_update(const TableMetadata& table, const ColumnMask& came, const ColumnMask& compared,
                      bool with_identity) {
  Builder builder(table, false);
  std::string assignments;
  for (const uint16_t column : assigned_columns(table, came, with_identity)) {
    assignments += fmt::format("{}{} = {}", assignments.empty() ? "" : ", ", table.columns[column].quoted_name,
                               builder.parameter(column, false));
  }
  std::string condition = builder.equal_identity();
  for (const uint16_t column : required_columns(table, came)) {
    condition += fmt::format(" AND {} = {}", table.columns[column].quoted_name, builder.parameter(column, false));
  }
  condition += builder.unchanged(compared);
  return builder.finish(fmt::format("UPDATE {} SET {} WHERE {}", table.own_rows(), assignments, condition));
}

// Whether an update may change a column that UPDATE cannot assign.
bool replaces_row(const TableMetadata& table, StatementKind kind) {
  if (kind != StatementKind::update_key && !(kind == StatementKind::update && table.keyless())) return false;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].identity_always && (table.keyless() || in_identity(table, column))) return true;
  }
  return false;
}

// The row goes and comes back with its new values; what did not come stays as it was. A column that the source does not
// have gets its default. `prelude` is the WITH query that the statement needs.
Statement make_replacement(const TableMetadata& table, const ColumnMask& came, const ColumnMask& compared,
                           std::string& prelude) {
  Builder builder(table, false);
  std::string condition = builder.equal_identity();
  condition += builder.unchanged(compared);
  prelude = fmt::format("gone AS (DELETE FROM {} WHERE {} RETURNING *)", table.own_rows(), condition);
  std::string values;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (!table.columns[column].written) continue;
    values += values.empty() ? "" : ", ";
    values += came.has(column) ? builder.parameter(column, false) : "gone." + table.columns[column].quoted_name;
  }
  return builder.finish(fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM gone",
                                    table.quoted_name, written_columns(table), values));
}

Statement make_set_insert(const TableMetadata& table) {
  Builder builder(table, true);
  std::string arrays;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].written) arrays += (arrays.empty() ? "" : ", ") + builder.parameter(column, false);
  }
  return builder.finish(fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({})",
                                    table.quoted_name, written_columns(table), arrays));
}

// One row of `s` per row of the set: its identity, its old values that are compared, then (update) the new values.
Statement make_set_change(const TableMetadata& table, const ColumnMask& came, const ColumnMask& compared, bool update) {
  Builder builder(table, true);
  std::string arrays;
  std::string names;
  std::string condition;
  std::string assignments;
  const auto add = [&](uint16_t column, const char* prefix) {
    arrays += (arrays.empty() ? "" : ", ") + builder.parameter(column, *prefix != 'v');
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", prefix, column);
  };
  for (const uint16_t column : table.identity) {
    add(column, "k");
    condition +=
        fmt::format("{}t.{} = s.k{}", condition.empty() ? "" : " AND ", table.columns[column].quoted_name, column);
  }
  for (const uint16_t column : table.compared) {
    if (!compared.has(column)) continue;
    add(column, "o");
    const metadata::Column& described = table.columns[column];
    condition +=
        " AND " + Builder::unchanged_value(described, "t." + described.quoted_name, fmt::format("s.o{}", column));
  }
  if (!update) {
    return builder.finish(fmt::format("DELETE FROM {} AS t USING unnest({}) AS s({}) WHERE {}", table.own_rows(),
                                      arrays, names, condition));
  }
  for (const uint16_t column : assigned_columns(table, came, false)) {
    add(column, "v");
    assignments +=
        fmt::format("{}{} = s.v{}", assignments.empty() ? "" : ", ", table.columns[column].quoted_name, column);
  }
  for (const uint16_t column : required_columns(table, came)) {
    add(column, "v");
    condition += fmt::format(" AND t.{} = s.v{}", table.columns[column].quoted_name, column);
  }
  return builder.finish(fmt::format("UPDATE {} AS t SET {} FROM unnest({}) AS s({}) WHERE {}", table.own_rows(),
                                    assignments, arrays, names, condition));
}

Statement make_remove(const TableMetadata& table, const ColumnMask& compared) {
  Builder builder(table, false);
  std::string condition = builder.equal_identity();
  condition += builder.unchanged(compared);
  return builder.finish(fmt::format("DELETE FROM {} WHERE {}", table.own_rows(), condition));
}

Statement make_remove_if_moved(const TableMetadata& table) {
  Builder builder(table, false);
  const std::string old_row = builder.equal_key(true);
  const std::string new_row = builder.equal_key(false);
  return builder.finish(fmt::format("DELETE FROM {0} WHERE {1} AND EXISTS (SELECT FROM {0} WHERE {2})",
                                    table.own_rows(), old_row, new_row));
}

}  // namespace

Statement make_statement(const TableMetadata& table, StatementKind kind, const ColumnMask& came,
                         const ColumnMask& compared, bool checked) {
  Statement statement;
  std::string prelude;
  switch (kind) {
    case StatementKind::insert:
      return make_insert(table, false);
    case StatementKind::upsert:
      return make_insert(table, true);
    case StatementKind::remove_if_moved:
      return make_remove_if_moved(table);
    case StatementKind::set_insert:
      return make_set_insert(table);
    case StatementKind::set_update:
      return make_set_change(table, came, compared, true);
    case StatementKind::set_remove:
      return make_set_change(table, came, compared, false);
    case StatementKind::update:
    case StatementKind::update_key:
      statement = replaces_row(table, kind) ? make_replacement(table, came, compared, prelude)
                                            : make_update(table, came, compared, kind == StatementKind::update_key);
      break;
    case StatementKind::remove:
      statement = make_remove(table, compared);
      break;
    case StatementKind::handler:
      break;  // nothing is made of it
  }
  if (checked) {
    // Several rows with the identity, where a unique index is missing, are no match either.
    statement.sql = fmt::format("WITH {}{}touched AS ({} RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM touched",
                                prelude, prelude.empty() ? "" : ", ", statement.sql);
    statement.is_checked = true;
  } else if (!prelude.empty()) {
    statement.sql = fmt::format("WITH {} {}", prelude, statement.sql);
  }
  return statement;
}

std::string shown_text(const std::string& value, size_t characters_max) {
  return fmt::format(
      "pg_catalog.left({0}, {1}), pg_catalog.octet_length({0}), pg_catalog.hashtextextended({0} COLLATE \"C\", 0)",
      value, characters_max);
}

Statement make_lookup(const TableMetadata& table, std::span<const uint16_t> by, size_t characters_max) {
  Builder builder(table, false);
  const std::string condition = by.empty() ? builder.same_row() : builder.equal(by, true);
  std::string values;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    // format() uses the type's output function, where a cast may have a form of its own, and writes NULL as nothing.
    const std::string value = fmt::format("(found.thalweg_row).{}", table.columns[column].quoted_name);
    values += fmt::format("{0}({1}, CASE WHEN pg_catalog.num_nulls({2}) = 0 THEN pg_catalog.format('%s', {2}) END)",
                          values.empty() ? "" : ", ", column, value);
  }
  return builder.finish(fmt::format(
      "SELECT shown.place, {}, found.thalweg_rows FROM (SELECT thalweg_row, pg_catalog.count(*) OVER () AS "
      "thalweg_rows FROM {} AS thalweg_row WHERE {} LIMIT 1) AS found, LATERAL (VALUES {}) AS shown (place, "
      "shown_text)",
      shown_text("shown.shown_text", characters_max), table.own_rows(), condition, values));
}

Statement make_lock(const TableMetadata& table, const ColumnMask& compared) {
  Builder builder(table, false);
  const std::string condition = builder.equal_key(true);
  const std::string values = builder.unchanged(compared, ", ");
  return builder.finish(fmt::format("SELECT{} FROM {} WHERE {} FOR UPDATE", values.empty() ? "" : values.substr(1),
                                    table.own_rows(), condition));
}

std::string make_copy(const TableMetadata& table) {
  return fmt::format("COPY {} ({}) FROM STDIN (FORMAT binary)", table.quoted_name, written_columns(table));
}

ColumnMask columns_that_came(const TableMetadata& table, const lcr::Value* values) {
  ColumnMask came;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (values[column].mark != lcr::ValueMark::unchanged) came.set(column);
  }
  return came;
}

}  // namespace thalweg::apply
