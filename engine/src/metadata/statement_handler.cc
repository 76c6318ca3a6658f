#include "metadata/statement_handler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "metadata/table_metadata.h"

namespace thalweg::metadata {

namespace {

using base::BindKind;

bool is_column(BindKind kind) { return kind == BindKind::new_value || kind == BindKind::old_value; }

// The type of a value that is not a column's.
base::TypeId type_of(BindKind kind) {
  constexpr uint32_t kBigint = 20;
  constexpr uint32_t kText = 25;
  constexpr uint32_t kTimestampWithTimeZone = 1184;
  constexpr uint32_t kLsn = 3220;
  switch (kind) {
    case BindKind::commit_time:
      return {kTimestampWithTimeZone};
    case BindKind::commit_lsn:
      return {kLsn};
    case BindKind::xid:
      return {kBigint};
    default:
      return {kText};
  }
}

HandlerStatement without_values(const StatementHandler& handler) {
  return {.number = handler.number,
          .time = handler.time,
          .of_inserts = handler.of_inserts,
          .of_updates = handler.of_updates,
          .of_deletes = handler.of_deletes,
          .errors = handler.errors,
          .sql = handler.statement.sql};
}

}  // namespace

HandlerStatement precommit_statement(const StatementHandler& handler) {
  HandlerStatement statement = without_values(handler);
  for (const base::BindName& name : handler.statement.names) {
    statement.types.push_back(type_of(name.kind));
    statement.sources.push_back({.kind = name.kind});
  }
  return statement;
}

base::Result<std::vector<HandlerStatement>> statements_of(const TableMetadata& table,
                                                          std::span<const StatementHandler> handlers) {
  std::vector<HandlerStatement> statements;
  for (const StatementHandler& handler : handlers) {
    if (handler.time == HandlerTime::precommit) continue;
    if (!handler.table.empty() && handler.table != table.quoted_name) continue;
    HandlerStatement statement = without_values(handler);
    for (const base::BindName& name : handler.statement.names) {
      if (!is_column(name.kind)) {
        statement.types.push_back(type_of(name.kind));
        statement.sources.push_back({.kind = name.kind});
        continue;
      }
      const auto column = std::ranges::find(table.columns, name.column, &Column::name);
      if (column == table.columns.end()) {
        auto failure = base::fail(base::ErrorCode::destination_table_differs,
                                  fmt::format("statement handler {} names {}, a column that changes of {} do not have",
                                              handler.number, written(name), table.quoted_name));
        failure.error().table = table.quoted_name;
        return failure;
      }
      statement.types.push_back(column->type->value_type);
      statement.sources.push_back({.kind = name.kind, .column = static_cast<uint16_t>(column - table.columns.begin())});
    }
    statements.push_back(std::move(statement));
  }
  return statements;
}

}  // namespace thalweg::metadata
