// Rows that are in the way of a change, and the log of what was done: the statements of conflict_resolver.cc.

#include <fmt/format.h>

#include "simulation/conflicts.h"
#include "simulation/destination_session.h"
#include "simulation/statement_text.h"
#include "simulation/text_values.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr size_t kShownMax = 100'000;  // characters of a value
constexpr const char* kCutMark = "...";

uint32_t type_of(int table, const std::string& name) {
  for (const ColumnShape& column : shapes_there()[static_cast<size_t>(table)].columns) {
    if (column.name == name) return column.type;
  }
  return 0;
}

// $3, perhaps with a type behind it
std::optional<std::string> read_text(StatementText& text, const std::vector<Parameter>& parameters) {
  const auto parameter = text.parameter();
  if (!parameter || *parameter >= parameters.size()) return std::nullopt;
  for (const char* const type : {"::pg_lsn", "::text[]", "::text"}) text.skip(type);
  return parameters[*parameter].bytes.value_or("");
}

// (SELECT pg_catalog.jsonb_object_agg(...) FROM (VALUES ('id'::text, pg_catalog.format('%s', $9)), ('note'::text,
// $10::text), ('code'::text, NULL)) AS shown (name, value)), or NULL. False: it is something else.
bool read_object(StatementText& text, int table, const std::vector<Parameter>& parameters,
                 std::optional<ShownRow>& row) {
  if (text.skip("NULL")) return true;
  if (!text.skip("(SELECT pg_catalog.jsonb_object_agg(name, ") || !text.skip_past(" FROM (VALUES ")) return false;
  row.emplace();
  do {
    if (!text.skip("(")) return false;
    const std::string name = text.literal();
    if (!text.skip("::text, ")) return false;
    Value& value = (*row)[name];
    if (!text.skip("NULL")) {
      const bool is_written = text.skip("pg_catalog.format('%s', ");
      const auto bytes = read_text(text, parameters);
      if (!bytes) return false;
      value = is_written ? shown_text(type_of(table, name), *bytes) : *bytes;
      if (value->size() > kShownMax && !value->ends_with(kCutMark)) value = value->substr(0, kShownMax) + kCutMark;
      if (is_written && !text.skip(")")) return false;
    }
    if (!text.skip(")")) return false;
  } while (text.skip(", "));
  return text.skip(") AS shown (name, value))");
}

}  // namespace

Outcome DestinationSession::conflict_statement(const std::string& sql, const Parameters& parameters, bool& known) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("SELECT shown.place, ")) return look_up(sql, parameters);
  if (is("SELECT") && sql.ends_with(" FOR UPDATE") && sql.contains(" FROM ONLY \"public\".")) {
    return lock_and_compare(sql, parameters);
  }
  if (is("INSERT INTO thalweg.conflict_log (")) return log_conflict(sql, parameters);
  if (is("DELETE FROM thalweg.conflict_log WHERE id IN ")) return affected(0);  // no world lasts that long
  if (is("SELECT attnum, (WITH RECURSIVE base AS (")) return rows({});          // no column has a modifier
  known = false;
  return {};
}

// A row for each column of the first row that the condition finds.
Outcome DestinationSession::look_up(const std::string& sql, const Parameters& parameters) {
  StatementText text(sql);
  RowStatement statement;
  bool is_known = text.skip_past(" AS thalweg_rows FROM ONLY ");
  if (is_known) statement.table = text.table();
  is_known = is_known && statement.table >= 0 && text.skip(" AS thalweg_row WHERE ") &&
             parse_condition(text, statement) && text.skip(" LIMIT 1) AS found, ");
  const auto table = static_cast<size_t>(statement.table);
  if (!is_known || shapes()[table].key < 0) {
    fail("the model of the destination does not know this look-up: {}", sql);
    return error("42601", "unknown statement");
  }
  for (const auto& [name, row] : destination_.working().data[table].rows) {
    const bool is_it = std::ranges::all_of(
        statement.key, [&](const auto& column) { return row[column.first] == parameters[column.second].bytes; });
    if (!is_it) continue;
    std::vector<Row> found;
    for (size_t i = 0; i < row.size(); ++i) {
      const ColumnShape& column = shapes_there()[table].columns[i];
      if (column.is_gone) continue;
      const std::string place = std::to_string(shapes_there()[table].attribute(i) - 1);
      if (!row[i]) {
        found.push_back({place, {}, {}, {}, "1"});
        continue;
      }
      const std::string value = shown_text(column.type, *row[i]);
      found.push_back({place, value.substr(0, kShownMax), std::to_string(value.size()), "0", "1"});
    }
    return rows(std::move(found));
  }
  return rows({});
}

// SELECT "a" IS NOT DISTINCT FROM $2, ... FROM ONLY "public"."account" WHERE "id" = $1 FOR UPDATE
Outcome DestinationSession::lock_and_compare(const std::string& sql, const Parameters& parameters) {
  const size_t from = sql.find(" FROM ONLY \"public\".");
  StatementText text(std::string_view(sql).substr(from));
  text.skip(" FROM ONLY ");
  RowStatement statement;
  statement.table = text.table();
  bool is_known = statement.table >= 0 && text.skip(" WHERE ") && parse_condition(text, statement) &&
                  text.skip(" FOR UPDATE") && text.at_end();
  StatementText list(std::string_view(sql).substr(0, from));
  list.skip("SELECT");
  list.skip(" ");
  RowStatement values;
  values.table = statement.table;
  const bool any = !list.at_end();
  while (is_known && any && !list.at_end()) {
    is_known = parse_condition(list, values) && (list.skip(", ") || list.at_end());
  }
  if (!is_known || !values.key.empty()) {
    fail("the model of the destination does not know this lock: {}", sql);
    return error("42601", "unknown statement");
  }
  Row key(shapes()[static_cast<size_t>(statement.table)].columns.size());
  for (const auto& [column, parameter] : statement.key) key[column] = parameters[parameter].bytes;
  std::optional<Row> found;
  if (Outcome locked = find_to_change(statement.table, key, found); !locked.ok()) return locked;
  if (!found) return rows({});
  Row same;
  for (const auto& [column, parameter] : values.compared) {
    same.emplace_back((*found)[column] == parameters[parameter].bytes ? "t" : "f");
  }
  return rows({same});
}

Outcome DestinationSession::log_conflict(const std::string& sql, const Parameters& parameters) {
  StatementText text(sql);
  LoggedConflict entry;
  const auto next = [&] { return text.skip(", "); };
  const auto take = [&](std::string& value) {
    const auto found = read_text(text, parameters);
    if (found) value = *found;
    return found.has_value();
  };
  const auto take_number = [&](uint64_t& value) {
    const auto found = text.number();
    if (found) value = *found;
    return found.has_value();
  };
  const auto take_literal = [&](std::string& value) {
    value = text.literal();
    return true;
  };
  std::string stream;
  std::string position;
  std::string schema;
  std::string ignored;
  uint64_t commit_micros = 0;
  uint64_t xid = 0;
  const auto take_object = [&](std::optional<ShownRow>& row) {
    return read_object(text, table_by_name(entry.table), parameters, row);
  };
  const bool is_known =
      text.skip_past(" VALUES (") && take(stream) && next() && take(position) && next() && take_number(commit_micros) &&
      next() && take_number(xid) && next() && take_number(entry.change) && next() && take(schema) && next() &&
      take(entry.table) && next() && take_literal(entry.operation) && next() && take_literal(entry.kind) && next() &&
      take(entry.sqlstate) && next() && take(ignored) && next() && take_literal(entry.action) && next() &&
      take(ignored) && next() && take(ignored) && next() && table_by_name(entry.table) >= 0 &&
      take_object(entry.before) && next() && take_object(entry.wanted) && next() && take_object(entry.there) &&
      text.skip(")") && text.at_end();
  if (!is_known) {
    fail("the model of the destination does not know this entry of the conflict log: {}; from {}", sql, text.rest());
    return error("42601", "unknown statement");
  }
  entry.commit_lsn = lsn({.bytes = position});
  entry.refused = refused_;
  redo_.emplace_back([entry](DestinationState& state) { state.logged.push_back(entry); });
  undo_.emplace_back([](DestinationState&) {});  // nobody reads the log before it is committed
  return affected(1);
}

}  // namespace thalweg::simulation
