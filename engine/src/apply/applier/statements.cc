#include "apply/applier/statements.h"

#include <algorithm>

#include <fmt/format.h>

namespace thalweg::apply {

namespace {

using metadata::Column;
using metadata::TableMetadata;

class Builder {
 public:
  Builder(const TableMetadata& table, bool arrays) : table_(table), arrays_(arrays) {}

  // "$3"
  // `declared`: with the column's own type, a domain's too.
  std::string parameter(uint16_t column, bool from_key, bool declared = false) {
    const auto& type = *table_.columns[column].type;
    statement_.types.push_back(declared ? type.oid : arrays_ ? type.array_type : type.value_type);
    statement_.parameters.push_back({.column = column, .from_key = from_key});
    return fmt::format("${}", statement_.parameters.size());
  }

  std::string equal_key(bool from_key) {
    std::string condition;
    for (const uint16_t column : table_.identity) {
      condition += fmt::format("{}{} = {}", condition.empty() ? "" : " AND ", table_.columns[column].quoted_name,
                               parameter(column, from_key));
    }
    return condition;
  }

  // Finds the old row.
  std::string equal_identity() {
    if (!table_.keyless()) return equal_key(true);
    std::string condition;
    // Any one row with the same image: works for every type, and NULL equals NULL. It needs no operator of the
    // column's type, but the very same type on both sides.
    for (uint16_t column = 0; column < table_.columns.size(); ++column) {
      if (!table_.columns[column].written) continue;
      condition += fmt::format("{}record_image_eq(ROW({}), ROW({}))", condition.empty() ? "" : " AND ",
                               table_.columns[column].quoted_name, parameter(column, true, true));
    }
    const char* const place = table_.is_partitioned ? "(tableoid, ctid)" : "ctid";
    const char* const places = table_.is_partitioned ? "tableoid, ctid" : "ctid";
    return fmt::format("{} = (SELECT {} FROM {} WHERE {} LIMIT 1)", place, places, table_.quoted_name, condition);
  }

  Statement finish(std::string sql) {
    statement_.sql = std::move(sql);
    return std::move(statement_);
  }

 private:
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

// Columns that cannot be assigned, and so must be as they came: a row where they are not is a conflict, not a difference
// that nobody sees.
std::vector<uint16_t> required_columns(const TableMetadata& table, const ColumnMask& came) {
  std::vector<uint16_t> columns;
  for (uint16_t column = 0; column < table.columns.size(); ++column) {
    if (came.has(column) && table.columns[column].identity_always && !in_identity(table, column)) columns.push_back(column);
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
      assignments += fmt::format("{}{} = excluded.{}", assignments.empty() ? "" : ", ", column.quoted_name, column.quoted_name);
    }
    sql += assignments.empty() ? fmt::format(" ON CONFLICT ({}) DO NOTHING", key)
                               : fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}", key, assignments);
  }
  return builder.finish(std::move(sql));
}

Statement make_update(const TableMetadata& table, const ColumnMask& came, bool with_identity) {
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
  return builder.finish(fmt::format("UPDATE {} SET {} WHERE {}", table.quoted_name, assignments, condition));
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

// One row of `s` per row of the set: its identity, then (update) the new values.
Statement make_set_change(const TableMetadata& table, const ColumnMask& came, bool update) {
  Builder builder(table, true);
  std::string arrays;
  std::string names;
  std::string condition;
  std::string assignments;
  const auto add = [&](uint16_t column, const char* prefix) {
    arrays += (arrays.empty() ? "" : ", ") + builder.parameter(column, *prefix == 'k');
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", prefix, column);
  };
  for (const uint16_t column : table.identity) {
    add(column, "k");
    condition += fmt::format("{}t.{} = s.k{}", condition.empty() ? "" : " AND ", table.columns[column].quoted_name, column);
  }
  if (!update) {
    return builder.finish(fmt::format("DELETE FROM {} AS t USING unnest({}) AS s({}) WHERE {}", table.quoted_name,
                                      arrays, names, condition));
  }
  for (const uint16_t column : assigned_columns(table, came, false)) {
    add(column, "v");
    assignments += fmt::format("{}{} = s.v{}", assignments.empty() ? "" : ", ", table.columns[column].quoted_name, column);
  }
  for (const uint16_t column : required_columns(table, came)) {
    add(column, "v");
    condition += fmt::format(" AND t.{} = s.v{}", table.columns[column].quoted_name, column);
  }
  return builder.finish(fmt::format("UPDATE {} AS t SET {} FROM unnest({}) AS s({}) WHERE {}", table.quoted_name,
                                    assignments, arrays, names, condition));
}

Statement make_remove(const TableMetadata& table) {
  Builder builder(table, false);
  const std::string condition = builder.equal_identity();
  return builder.finish(fmt::format("DELETE FROM {} WHERE {}", table.quoted_name, condition));
}

Statement make_remove_if_moved(const TableMetadata& table) {
  Builder builder(table, false);
  const std::string old_row = builder.equal_key(true);
  const std::string new_row = builder.equal_key(false);
  return builder.finish(fmt::format("DELETE FROM {0} WHERE {1} AND EXISTS (SELECT FROM {0} WHERE {2})",
                                    table.quoted_name, old_row, new_row));
}

}  // namespace

Statement make_statement(const TableMetadata& table, StatementKind kind, const ColumnMask& came, bool checked) {
  Statement statement;
  switch (kind) {
    case StatementKind::insert: return make_insert(table, false);
    case StatementKind::upsert: return make_insert(table, true);
    case StatementKind::remove_if_moved: return make_remove_if_moved(table);
    case StatementKind::set_insert: return make_set_insert(table);
    case StatementKind::set_update: return make_set_change(table, came, true);
    case StatementKind::set_remove: return make_set_change(table, came, false);
    case StatementKind::update: statement = make_update(table, came, false); break;
    case StatementKind::update_key: statement = make_update(table, came, true); break;
    case StatementKind::remove: statement = make_remove(table); break;
  }
  if (checked) {
    statement.sql = fmt::format("WITH touched AS ({} RETURNING 1) SELECT 1 / count(*) FROM touched", statement.sql);
    statement.is_checked = true;
  }
  return statement;
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
