#include "simulation/row_statement.h"

#include <algorithm>

namespace thalweg::simulation {

namespace {

std::optional<size_t> column_of(int table, const std::string& name) {
  const auto& columns = shapes_there()[static_cast<size_t>(table)].columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name && !columns[i].is_gone) return i;
  }
  return std::nullopt;
}

}  // namespace

// "a" = $1 AND "b" IS NOT DISTINCT FROM $2 AND ..., or for tables without a key ctid = (SELECT ctid FROM t WHERE ("a" =
// $1 OR ("a" IS NULL AND $1 IS NULL)) AND ... LIMIT 1)
bool parse_condition(StatementText& text, RowStatement& statement) {
  const bool by_place = text.skip("ctid = (SELECT ctid FROM ONLY ");
  if (by_place && (text.table() != statement.table || !text.skip(" WHERE "))) return false;
  do {
    const bool with_null = text.skip("(");
    const auto column = column_of(statement.table, text.name());
    const bool is_compared = text.skip(" IS NOT DISTINCT FROM ");
    if (!column || (!is_compared && !text.skip(" = "))) return false;
    const auto parameter = text.parameter();
    if (!parameter) return false;
    if (is_compared) {
      statement.compared.emplace_back(*column, *parameter);
      continue;
    }
    statement.key.emplace_back(*column, *parameter);
    if (!with_null) continue;
    if (!text.skip(" OR (")) return false;
    text.name();
    if (!text.skip(" IS NULL AND ") || !text.parameter() || !text.skip(" IS NULL))")) return false;
  } while (text.skip(" AND "));
  return !by_place || text.skip(" LIMIT 1)");
}

namespace {

// s(k0, v1, ...): where each of its columns comes from.
std::optional<std::vector<std::pair<std::string, size_t>>> parse_unnest(StatementText& text) {
  if (!text.skip("unnest(")) return std::nullopt;
  std::vector<size_t> parameters;
  do {
    const auto parameter = text.parameter();
    if (!parameter) return std::nullopt;
    parameters.push_back(*parameter);
  } while (text.skip(", "));
  if (!text.skip(") AS s(")) return std::nullopt;
  std::vector<std::pair<std::string, size_t>> columns;
  for (const size_t parameter : parameters) {
    std::string name;
    while (!text.at_end() && text.rest().front() != ',' && text.rest().front() != ')') {
      name += text.rest().front();
      text.skip(text.rest().substr(0, 1));
    }
    text.skip(", ");
    columns.emplace_back(std::move(name), parameter);
  }
  if (!text.skip(")")) return std::nullopt;
  return columns;
}

bool parse_insert(StatementText& text, RowStatement& statement) {
  statement.table = text.table();
  if (statement.table < 0 || !text.skip(" (")) return false;
  std::vector<size_t> columns;
  do {
    const auto column = column_of(statement.table, text.name());
    if (!column) return false;
    columns.push_back(*column);
  } while (text.skip(", "));
  if (!text.skip(") OVERRIDING SYSTEM VALUE ")) return false;
  statement.is_set = text.skip("SELECT * FROM unnest(");
  if (!statement.is_set && !text.skip("VALUES (")) return false;
  for (const size_t column : columns) {
    const auto parameter = text.parameter();
    if (!parameter) return false;
    statement.values.emplace_back(column, *parameter);
    text.skip(", ");
  }
  return text.skip(")");
}

// t."a" = s.k0 AND t."b" IS NOT DISTINCT FROM s.o1 AND ...
bool parse_join(StatementText& text, RowStatement& statement, const std::vector<std::pair<std::string, size_t>>& from) {
  do {
    if (!text.skip("t.")) return false;
    const auto column = column_of(statement.table, text.name());
    const bool is_compared = text.skip(" IS NOT DISTINCT FROM s.");
    if (!column || (!is_compared && !text.skip(" = s."))) return false;
    const auto source =
        std::ranges::find_if(from, [&](const auto& entry) { return text.rest().starts_with(entry.first); });
    if (source == from.end() || !text.skip(source->first)) return false;
    (is_compared ? statement.compared : statement.key).emplace_back(*column, source->second);
  } while (text.skip(" AND "));
  return true;
}

bool parse_update(StatementText& text, RowStatement& statement) {
  statement.table = text.table();
  if (statement.table < 0) return false;
  statement.is_set = text.skip(" AS t");
  if (!text.skip(" SET ")) return false;
  std::vector<std::pair<size_t, std::string>> assigned;  // of a set: the column of s
  do {
    const auto column = column_of(statement.table, text.name());
    if (!column || !text.skip(" = ")) return false;
    if (!statement.is_set) {
      const auto parameter = text.parameter();
      if (!parameter) return false;
      statement.values.emplace_back(*column, *parameter);
      continue;
    }
    if (!text.skip("s.v")) return false;
    const auto number = text.number();
    if (!number) return false;
    assigned.emplace_back(*column, "v" + std::to_string(*number));
  } while (text.skip(", "));
  if (!statement.is_set) return text.skip(" WHERE ") && parse_condition(text, statement);
  if (!text.skip(" FROM ")) return false;
  const auto from = parse_unnest(text);
  if (!from || !text.skip(" WHERE ")) return false;
  for (const auto& [column, name] : assigned) {
    const auto source = std::ranges::find(*from, name, &std::pair<std::string, size_t>::first);
    if (source == from->end()) return false;
    statement.values.emplace_back(column, source->second);
  }
  return parse_join(text, statement, *from);
}

bool parse_remove(StatementText& text, RowStatement& statement) {
  statement.table = text.table();
  if (statement.table < 0) return false;
  if (text.skip(" WHERE ")) return parse_condition(text, statement);
  statement.is_set = true;
  if (!text.skip(" AS t USING ")) return false;
  const auto from = parse_unnest(text);
  return from && text.skip(" WHERE ") && parse_join(text, statement, *from);
}

}  // namespace

std::optional<RowStatement> parse_row_statement(const std::string& sql) {
  StatementText text(sql);
  RowStatement statement;
  statement.checked = text.skip("WITH touched AS (");
  bool known = false;
  if (text.skip("INSERT INTO ")) {
    known = parse_insert(text, statement);
  } else if (text.skip("UPDATE ONLY ")) {
    statement.kind = RowStatement::Kind::update;
    known = parse_update(text, statement);
  } else if (text.skip("DELETE FROM ONLY ")) {
    statement.kind = RowStatement::Kind::remove;
    known = parse_remove(text, statement);
  }
  if (known && statement.checked) known = text.skip(" RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM touched");
  if (!known || !text.at_end()) return std::nullopt;
  return statement;
}

std::optional<std::vector<Value>> parse_array(const std::string& bytes) {
  size_t at = 0;
  const auto integer = [&]() -> uint32_t {
    uint32_t value = 0;
    for (int i = 0; i < 4 && at < bytes.size(); ++i) value = value << 8 | static_cast<unsigned char>(bytes[at++]);
    return value;
  };
  if (integer() != 1) return std::nullopt;
  integer();  // has NULLs
  integer();  // element type
  const uint32_t count = integer();
  integer();  // lower bound
  std::vector<Value> values;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = integer();
    if (length == UINT32_MAX) {
      values.emplace_back();
      continue;
    }
    if (at + length > bytes.size()) return std::nullopt;
    values.emplace_back(bytes.substr(at, length));
    at += length;
  }
  if (at != bytes.size()) return std::nullopt;
  return values;
}

std::vector<std::string> parse_table_names(const std::string& list) {
  std::vector<std::string> names;
  StatementText text(list);
  while (!text.at_end()) {
    text.skip("ONLY ");
    text.name();
    if (!text.skip(".")) break;
    names.push_back(text.name());
    if (!text.skip(", ")) break;
  }
  return names;
}

}  // namespace thalweg::simulation
