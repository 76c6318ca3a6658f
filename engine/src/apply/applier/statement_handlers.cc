#include "apply/applier/statement_handlers.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/group_executor.h"
#include "apply/applier/tuple_values.h"
#include "apply/error_policy.h"
#include "apply/row_errors.h"

namespace thalweg::apply {

using base::BindKind;
using lcr::FrameKind;
using lcr::ValueMark;
using metadata::HandlerStatement;
using metadata::HandlerTime;
using metadata::TableMetadata;

namespace {

constexpr int64_t kPostgresEpochMicros = 946'684'800'000'000;  // 2000-01-01, since 1970

bool is_known(const lcr::Value& value) { return value.mark == ValueMark::binary || value.mark == ValueMark::text; }

std::string_view operation_of(FrameKind kind) {
  return kind == FrameKind::insert ? "INSERT" : kind == FrameKind::update ? "UPDATE" : "DELETE";
}

bool is_column(BindKind kind) { return kind == BindKind::new_value || kind == BindKind::old_value; }

bool is_for(const HandlerStatement& handler, FrameKind kind, const base::Error& error) {
  return handler.is_of(kind) &&
         (handler.errors.empty() ||
          std::ranges::any_of(handler.errors, [&](const std::string& name) { return is_named(name, error); }));
}

}  // namespace

bool has_error_handler(const TableMetadata& table, FrameKind kind, const base::Error& error) {
  return std::ranges::any_of(table.error_statements,
                             [&](const HandlerStatement& handler) { return is_for(handler, kind, error); });
}

StatementHandlers::StatementHandlers(DestinationSession& session, std::span<const metadata::StatementHandler> handlers)
    : session_(session) {
  for (const metadata::StatementHandler& handler : handlers) {
    if (handler.time != HandlerTime::precommit) continue;
    HandlerStatement& made = precommit_.emplace_back(metadata::precommit_statement(handler));
    // The session keeps a prepared statement by its text alone, and two of them may differ in their values only.
    made.sql = fmt::format("/* {} */ {}", made.number, made.sql);
  }
}

base::Result<StatementHandlers::Row> StatementHandlers::read(const TableMetadata& table, const lcr::FrameView& frame,
                                                             Arena& arena) {
  Row row;
  const size_t columns = table.columns.size();
  const auto old = frame.old_tuple();
  if (frame.new_tuple().exists()) {
    THALWEG_ASSIGN(row.now, read_values(frame.new_tuple(), table, arena));
  }
  if (frame.kind() == FrameKind::insert) return row;
  const bool is_whole = frame.has(lcr::kOldRow);
  // Without an old tuple the columns of the identity are as they were.
  row.old = arena.take_array<lcr::Value>(columns);
  if (old.exists()) {
    THALWEG_ASSIGN(row.old, read_values(old, table, arena));
  } else if (row.now != nullptr) {
    std::copy_n(row.now, columns, row.old);
  }
  // A partition may have another identity than its root's, and then a key that moves came without its old value.
  const bool is_unknown = table.is_partitioned && !is_whole && !old.exists() && frame.kind() == FrameKind::update;
  const auto forget = [&](size_t column) { row.old[column] = {.mark = ValueMark::unchanged, .bytes = {}}; };
  const auto every = std::views::iota(size_t{0}, columns);
  if (!is_whole) {
    // Beside a key the others come as NULL. A partition may have a narrower identity than its table says.
    for (const size_t column : every) {
      const bool has_come = !is_unknown && table.columns[column].source_key &&
                            (table.source.replica_identity != 'f' || (old.exists() && is_known(row.old[column])));
      if (!has_come) forget(column);
    }
  } else if (table.is_partitioned) {
    // A partition's key alone, below a table with REPLICA IDENTITY FULL, looks like a row with NULL in all others.
    const auto in_identity = [&](size_t column) {
      return std::ranges::find(table.identity, column) != table.identity.end();
    };
    const auto has_value = [&](size_t column) { return !in_identity(column) && is_known(row.old[column]); };
    if (std::ranges::none_of(every, has_value)) {
      for (const size_t column : every) {
        if (!in_identity(column)) forget(column);
      }
    }
  }
  // A large value that did not change is as the old row has it.
  for (const size_t column : every) {
    if (row.now == nullptr || row.now[column].mark != ValueMark::unchanged) continue;
    if (is_known(row.old[column])) row.now[column] = row.old[column];
  }
  return row;
}

std::string StatementHandlers::add_column(const TableMetadata& table, const Row& row, metadata::BindSource source) {
  const bool is_new = source.kind == BindKind::new_value;
  const lcr::Value* const values = is_new ? row.now : row.old;
  if (values == nullptr) {  // an INSERT has no old row, a DELETE no new one
    parameters_.push_back({.bytes = {}, .type = {}, .is_null = true, .is_binary = false});
    return {};
  }
  const lcr::Value& value = values[source.column];
  if (value.mark == ValueMark::unchanged) {
    return fmt::format(
        "{} did not come with the change{}; REPLICA IDENTITY FULL at the source{} makes later changes bring it",
        base::written({.kind = source.kind, .column = table.columns[source.column].name}),
        is_new ? ", which left it as it was" : "", table.is_partitioned ? ", of each partition," : "");
  }
  parameters_.push_back({.bytes = value.bytes,
                         .type = {},
                         .is_null = value.mark == ValueMark::null,
                         .is_binary = value.mark == ValueMark::binary});
  return {};
}

void StatementHandlers::add_number(uint64_t number, size_t place) {
  const uint64_t swapped = __builtin_bswap64(number);
  numbers_[place] = std::bit_cast<std::array<std::byte, 8>>(swapped);
  parameters_.push_back({.bytes = numbers_[place], .type = {}, .is_null = false, .is_binary = true});
}

void StatementHandlers::add(const Transaction& transaction, const TableMetadata* table, BindKind kind) {
  switch (kind) {
    case BindKind::commit_time:
      return add_number(std::bit_cast<uint64_t>(transaction.commit_time.value - kPostgresEpochMicros), 0);
    case BindKind::commit_lsn:
      return add_number(transaction.commit_lsn.value, 1);
    case BindKind::xid:
      return add_number(transaction.xid.value, 2);
    case BindKind::schema:
      return parameters_.push_back(pg::text_parameter(table->source.schema_name));
    default:
      return parameters_.push_back(pg::text_parameter(table->source.table_name));
  }
}

void StatementHandlers::add_failure(const HandledError& failed, BindKind kind) {
  if (kind == BindKind::error) return parameters_.push_back(pg::text_parameter(failed.error.message));
  const std::string_view text = kind == BindKind::sqlstate     ? std::string_view(failed.error.sqlstate)
                                : kind == BindKind::constraint ? failed.constraint
                                                               : failed.kind;
  if (!text.empty()) return parameters_.push_back(pg::text_parameter(text));
  parameters_.push_back({.bytes = {}, .type = {}, .is_null = true, .is_binary = false});
}

base::Result<std::string> StatementHandlers::send_one(const Change& change, const HandlerStatement& handler) {
  const auto& [transaction, table, frame, row, failed] = change;
  parameters_.clear();
  for (const metadata::BindSource source : handler.sources) {
    if (source.kind == BindKind::operation) {
      parameters_.push_back(pg::text_parameter(operation_of(frame.kind())));
    } else if (failed != nullptr && base::is_of_failure(source.kind)) {
      add_failure(*failed, source.kind);
    } else if (!is_column(source.kind)) {
      add(transaction, &table, source.kind);
    } else if (std::string missing = add_column(table, row, source); !missing.empty()) {
      return missing;
    }
  }
  THALWEG_TRY(session_.run(session_.prepared(table, handler), parameters_,
                           {.any = true, .frame = frame.bytes().data(), .table = &table, .handler = handler.number}));
  return {};
}

base::Result<bool> StatementHandlers::send(const Transaction& transaction, const TableMetadata& table,
                                           const lcr::FrameView& frame, HandlerTime time, Arena& arena) {
  std::optional<Row> row;
  for (const HandlerStatement& handler : table.statements) {
    if (handler.time != time || !handler.is_of(frame.kind())) continue;
    if (!row) {
      THALWEG_ASSIGN(row, read(table, frame, arena));
    }
    THALWEG_ASSIGN(std::string missing,
                   send_one({.transaction = transaction, .table = table, .frame = frame, .row = *row}, handler));
    if (missing.empty()) continue;
    return std::unexpected(final_error({.error = base::fail(base::ErrorCode::apply_failed, std::move(missing)).error(),
                                        .frame = lcr::copy_of(frame.bytes().data()),
                                        .table = &table,
                                        .handler = handler.number},
                                       transaction));
  }
  return row.has_value();
}

base::Result<std::string> StatementHandlers::send(const Transaction& transaction, const TableMetadata& table,
                                                  const lcr::FrameView& frame, const HandledError& failed,
                                                  Arena& arena) {
  THALWEG_ASSIGN(const Row row, read(table, frame, arena));
  for (const HandlerStatement& handler : table.error_statements) {
    if (!is_for(handler, frame.kind(), failed.error)) continue;
    const Change change{.transaction = transaction, .table = table, .frame = frame, .row = row, .failed = &failed};
    THALWEG_ASSIGN(const std::string missing, send_one(change, handler));
    if (!missing.empty()) return failed_handler(handler.number, missing);
  }
  return {};
}

base::Result<void> StatementHandlers::send_precommit(const Transaction& transaction) {
  for (const HandlerStatement& handler : precommit_) {
    parameters_.clear();
    for (const metadata::BindSource source : handler.sources) add(transaction, nullptr, source.kind);
    THALWEG_TRY(session_.run(session_.prepared(handler.sql, handler.types), parameters_,
                             {.any = true, .handler = handler.number}));
  }
  return {};
}

}  // namespace thalweg::apply
