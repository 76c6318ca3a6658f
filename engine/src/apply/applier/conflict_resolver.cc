#include "apply/applier/conflict_resolver.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "apply/applier/old_values.h"
#include "apply/applier/resolution.h"
#include "apply/applier/statements.h"
#include "apply/data_error.h"
#include "apply/row_errors.h"
#include "base/plain_text.h"
#include "metadata/destination_version.h"
#include "pg/guarded_query.h"
#include "pg/text_array.h"

namespace thalweg::apply {

using base::ErrorCode;
using lcr::FrameKind;
using lcr::ValueMark;
using metadata::TableMetadata;
using telemetry::kLoggedCharactersMax;

namespace {

constexpr size_t kRawBytesMax = 1024;  // of a value that the server cannot read
constexpr std::string_view kCutMark = "...";
constexpr std::string_view kParkedAction = "park";

// Old values that were compared with the row that was not found, in `arena`; null: none.
base::Result<const lcr::Value*> compared_values(const StatementFailure& failure, Arena& arena) {
  if (!failure.missing_row || failure.frame.empty() || failure.table->compared.empty()) return nullptr;
  const auto frame = lcr::FrameView::trusted(failure.frame.data());
  const auto old = frame.old_tuple();
  THALWEG_ASSIGN(const Values key, read_values(old.exists() ? old : frame.new_tuple(), *failure.table, arena));
  return old_values(*failure.table, frame, key, arena);
}

// Belongs to the attempt as a whole: the data of no row causes it.
bool is_about_row(const StatementFailure& failure, const base::Error& error) {
  return failure.table != nullptr && !failure.frame.empty() && is_about_data(error.code) &&
         error.code != ErrorCode::destination_table_differs && !metadata::is_schema_change(error.sqlstate);
}

FrameKind kind_of(const StatementFailure& failure) { return lcr::FrameView::trusted(failure.frame.data()).kind(); }

pg::Parameter parameter_of(const lcr::Value& value, base::TypeId type) {
  return {.bytes = value.bytes,
          .type = type,
          .is_null = value.mark == ValueMark::null,
          .is_binary = value.mark == ValueMark::binary};
}

// The handlers' action as the log names it.
std::string_view action_of(std::span<const ConflictHandler> combined) {
  const ConflictAction first = combined.front().action;
  const auto is_same = [&](const ConflictHandler& handler) { return handler.action == first; };
  return std::ranges::all_of(combined, is_same) ? name_of(first) : "combined";
}

std::string_view operation_of(FrameKind kind) {
  return kind == FrameKind::insert ? "INSERT" : kind == FrameKind::update ? "UPDATE" : "DELETE";
}

std::string raw_text(std::span<const std::byte> bytes) {
  const auto shown = bytes.first(std::min(bytes.size(), kRawBytesMax));
  const std::string_view text(reinterpret_cast<const char*>(shown.data()), shown.size());
  const std::string_view mark = shown.size() < bytes.size() ? kCutMark : "";
  if (base::is_plain_text(text)) return fmt::format("{}{}", text, mark);
  std::string hex = "\\x";
  for (const std::byte byte : shown) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return hex.append(mark);
}

// Parameters of one statement, with what they point to.
class Parameters {
 public:
  // "$3"
  std::string text(std::string value) { return add(pg::text_parameter(texts_.emplace_back(std::move(value)))); }
  std::string value(const lcr::Value& value, base::TypeId type) { return add(parameter_of(value, type)); }
  std::span<const pg::Parameter> list() const { return list_; }

 private:
  std::string add(pg::Parameter parameter) {
    list_.push_back(parameter);
    return fmt::format("${}", list_.size());
  }
  std::deque<std::string> texts_;  // whose elements stay where they are
  std::vector<pg::Parameter> list_;
};

// An object of columns by name: of (name, text) pairs.
std::string object_of(const std::string& pairs) {
  if (pairs.empty()) return "'{}'";
  return fmt::format(
      "(SELECT pg_catalog.jsonb_object_agg(name, CASE WHEN pg_catalog.length(value) > {0} THEN "
      "pg_catalog.left(value, {0}) || '{1}' ELSE value END) FROM (VALUES {2}) AS shown (name, value))",
      kLoggedCharactersMax, kCutMark, pairs);
}

bool is_of_unique_key(std::optional<ConflictKind> kind) {
  return kind == ConflictKind::insert_exists || kind == ConflictKind::update_exists;
}

bool is_same_row(const TableMetadata& table, const std::vector<std::optional<std::string>>& left,
                 const std::vector<std::optional<std::string>>& right) {
  if (table.keyless()) return left == right;
  return std::ranges::all_of(table.identity, [&](uint16_t column) { return left[column] == right[column]; });
}

std::string pair_of(const pg::Connection& connection, const std::string& name, const std::string& value) {
  return fmt::format("({}::text, {})", connection.quote_literal(name), value);
}

}  // namespace

std::optional<ConflictKind> conflict_of(const StatementFailure& failure, const base::Error& error) {
  // Within the span of a copy other rules hold (README.md, "Catch-up").
  if (!is_about_row(failure, error) || error.code == ErrorCode::initial_copy_inconsistent) return std::nullopt;
  if (failure.unwritten) return std::nullopt;  // a trigger, say: the row is as at the source
  if (failure.handler > 0) return std::nullopt;
  // A foreign key's error names the table that has it; a partition's, its partition.
  const bool is_parent = !failure.table->is_partitioned && !failure.error.table.empty() &&
                         failure.error.table != failure.table->quoted_name;
  return conflict_of({.operation = kind_of(failure),
                      .missing_row = failure.missing_row,
                      .differs = failure.differs,
                      .sqlstate = failure.error.sqlstate,
                      .is_parent = is_parent});
}

bool ConflictResolver::may_settle(const LiveErrorPolicies& policies, const StatementFailure& failure,
                                  const Transaction& transaction) {
  const base::Error error = final_error(failure, transaction);
  if (!is_about_row(failure, error)) return false;
  Arena arena;
  const auto compared = compared_values(failure, arena);
  if (compared && *compared != nullptr && error.code != ErrorCode::initial_copy_inconsistent) return true;
  const auto kind = conflict_of(failure, error);
  const RowDecision decision = policies.decide_row(kind, error, transaction.retries);
  if (decision.goes_on() || (!decision.retries && has_error_handler(*failure.table, kind_of(failure), error))) {
    return true;
  }
  if (!is_of_unique_key(kind)) return false;
  return policies.decide_row(ConflictKind::multiple_unique_conflicts, error, transaction.retries, kind).goes_on();
}

base::Result<Refusal> ConflictResolver::settle(const GroupExecutor::FailedRow& row) {
  StatementFailure failure = row.failure;
  if (!is_about_row(failure, final_error(failure, transaction_))) return failure;
  arena_.reset();
  Refusal unknown;
  ColumnMask differing;
  if (failure.missing_row && conflict_of(failure, final_error(failure, transaction_))) {
    THALWEG_ASSIGN(const bool is_there, look_for_row(failure, differing, unknown));
    if (unknown) return unknown;
    failure.differs = differing.any();
    if (is_there && !failure.differs) {
      // It may have come, or become again what it was, since the change did not find it. Now it is locked.
      THALWEG_ASSIGN(Refusal again, executor_.repeat_row(transaction_, row.frame));
      if (!again || !again->missing_row) return again;
      failure.unwritten = true;
    }
  }
  const base::Error error = final_error(failure, transaction_);
  const auto general = conflict_of(failure, error);
  THALWEG_ASSIGN(const auto kind, exact_kind(*failure.table, row.frame, general));
  const RowDecision decision = policies_.decide_row(kind, error, transaction_.retries, general);
  const bool is_handled = !decision.retries && has_error_handler(*failure.table, row.frame.kind(), error);
  if (!decision.goes_on() && !is_handled) return failure;
  bool is_met = true;
  if (!decision.combined.empty() && row.frame.kind() == FrameKind::insert) {
    std::optional<Refusal> again;
    THALWEG_ASSIGN(is_met, lock_second_row(row, again));
    if (again) return *again;
  }
  THALWEG_ASSIGN(const auto there, find_row(*failure.table, row.frame, general));
  std::string_view action = decision.action == ConflictAction::discard ? "discard" : "";  // empty: not settled yet
  if (decision.action == ConflictAction::overwrite) {
    bool done = false;
    THALWEG_ASSIGN(Refusal refusal, executor_.overwrite_row(transaction_, row.frame, failure.differs, done));
    if (refusal) return refusal;
    if (done) action = "overwrite";
  }
  if (!decision.combined.empty()) {
    bool done = false;
    if (is_met) {
      THALWEG_ASSIGN(done, combine(row, decision.combined, differing, failure.unsettled, unknown));
    } else {
      failure.unsettled = "the destination has no row with this key";
    }
    if (unknown) return unknown;
    if (done) action = action_of(decision.combined);
  }
  if (action.empty() && is_handled) {
    const HandledError failed{.error = error,
                              .constraint = failure.named.constraint,
                              .kind = kind ? telemetry::name_of(*kind) : std::string_view{}};
    std::string why;
    THALWEG_ASSIGN(const bool done, replace(row, failed, why, unknown));
    if (unknown) return unknown;
    if (!done) {  // somebody wants more done than to leave it out
      failure.unsettled += (failure.unsettled.empty() ? "" : "; ") + why;
      return failure;
    }
    action = "statement";
  }
  if (action.empty() && !decision.skips) return failure;
  if (action.empty()) action = "skip";
  if (auto recorded = record(row, kind, error, action, there); !recorded) {
    if (session_.broken()) return std::unexpected(std::move(recorded).error());
    return StatementFailure{.error = std::move(recorded).error()};  // of the transaction as a whole
  }
  ++settled_;
  if (kind) conflicts_.push_back({.table = failure.table, .kind = *kind});
  return Refusal{};
}

base::Result<bool> ConflictResolver::log_parked(const ParkedConflict& conflict, const base::Error& why) {
  arena_.reset();
  const auto frame = lcr::FrameView::trusted(conflict.failure.frame.data());
  const TableMetadata& table = *conflict.failure.table;
  THALWEG_ASSIGN(const auto kind, exact_kind(table, frame, conflict.kind));
  THALWEG_ASSIGN(const auto there, find_row(table, frame, conflict.kind));
  const auto recorded =
      record({.frame = frame, .change = conflict.change, .failure = conflict.failure}, kind, why, kParkedAction, there);
  if (!recorded && session_.broken()) return std::unexpected(recorded.error());
  return recorded.has_value();
}

base::Result<bool> ConflictResolver::look_for_row(const StatementFailure& failure, ColumnMask& differing,
                                                  Refusal& refusal) {
  const TableMetadata& table = *failure.table;
  if (table.keyless()) return false;  // its rows are found by all of their values
  THALWEG_ASSIGN(const lcr::Value* const old, compared_values(failure, arena_));
  if (old != nullptr) return lock_row(table, old, known_columns(table, old), differing, refusal);
  const auto frame = lcr::FrameView::trusted(failure.frame.data());
  const auto before = frame.old_tuple();
  THALWEG_ASSIGN(const Values key, read_values(before.exists() ? before : frame.new_tuple(), table, arena_));
  return lock_row(table, key, {}, differing, refusal);
}

base::Result<bool> ConflictResolver::lock_row(const TableMetadata& table, const lcr::Value* old,
                                              const ColumnMask& known, ColumnMask& differing, Refusal& refusal) {
  const Statement statement = make_lock(table, known);
  std::vector<pg::Parameter> parameters;
  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    parameters.push_back(parameter_of(old[statement.parameters[i].column], statement.types[i]));
  }
  session_.leave_pipeline();
  pg::Connection& connection = session_.connection();
  const auto rows = connection.query(statement.sql, parameters);
  if (!rows && connection.broken()) return std::unexpected(rows.error());
  if (!rows) refusal = StatementFailure{.error = rows.error()};
  if (!rows || rows->size() == 0) return false;
  size_t place = 0;
  for (const uint16_t column : table.compared) {
    if (known.has(column) && !rows->boolean(0, place++)) differing.set(column);
  }
  return true;
}

base::Result<bool> ConflictResolver::lock_second_row(const GroupExecutor::FailedRow& row,
                                                     std::optional<Refusal>& again) {
  const TableMetadata& table = *row.failure.table;
  if (table.keyless()) return false;
  THALWEG_ASSIGN(const Values wanted, read_values(row.frame.new_tuple(), table, arena_));
  ColumnMask none;
  Refusal refusal;
  THALWEG_ASSIGN(const bool is_there, lock_row(table, wanted, {}, none, refusal));
  if (refusal) again.emplace(refusal);
  if (refusal || is_there) return is_there;
  // The row in the way has another key, or has gone since.
  THALWEG_ASSIGN(refusal, executor_.repeat_row(transaction_, row.frame));
  if (!refusal || refusal->error.sqlstate != row.failure.error.sqlstate) again.emplace(refusal);
  return false;
}

base::Result<bool> ConflictResolver::combine(const GroupExecutor::FailedRow& row,
                                             std::span<const ConflictHandler> handlers, const ColumnMask& differing,
                                             std::string& why, Refusal& refusal) {
  const TableMetadata& table = *row.failure.table;
  if (table.keyless() || row.frame.kind() == FrameKind::remove) return false;
  THALWEG_ASSIGN(const Values wanted, read_values(row.frame.new_tuple(), table, arena_));
  THALWEG_ASSIGN(const lcr::Value* const old, compared_values(row.failure, arena_));
  for (size_t column = 0; old != nullptr && column < table.columns.size(); ++column) {
    const bool is_known = old[column].mark == ValueMark::binary || old[column].mark == ValueMark::text;
    if (wanted[column].mark == ValueMark::unchanged && is_known) wanted[column] = old[column];
  }
  const auto resolution = make_resolution({.table = table,
                                           .wanted = wanted,
                                           .old = old == nullptr ? wanted : old,
                                           .has_old = old != nullptr,
                                           .differing = differing,
                                           .commit_time = transaction_.commit_time},
                                          handlers);
  if (!resolution) {
    why = resolution.error();
    return false;
  }
  if (resolution->sql.empty()) return true;
  std::vector<pg::Parameter> parameters;
  for (const auto& [value, type] : resolution->parameters) parameters.push_back(parameter_of(*value, type));
  session_.leave_pipeline();
  pg::Connection& connection = session_.connection();
  THALWEG_TRY(connection.script("SAVEPOINT thalweg_look"));
  const auto done = connection.query(resolution->sql, parameters);
  const bool is_written = done && done->integer(0, 0) == 1;
  if (is_written || (done && done->integer(0, 1) == 1)) {
    THALWEG_TRY(connection.script("RELEASE SAVEPOINT thalweg_look"));
    if (is_written) {
      THALWEG_ASSIGN(refusal, executor_.follow_row(transaction_, row.frame));
    }
    return !refusal;
  }
  if (connection.broken()) return std::unexpected(done.error());
  if (!done && !is_about_data(final_error({.error = done.error()}, transaction_).code)) {
    refusal = StatementFailure{.error = done.error()};  // a deadlock, say
    return false;
  }
  why = done ? std::string(kUnwritten) : done.error().message;
  THALWEG_TRY(connection.script("ROLLBACK TO SAVEPOINT thalweg_look; RELEASE SAVEPOINT thalweg_look"));
  return false;
}

base::Result<bool> ConflictResolver::replace(const GroupExecutor::FailedRow& row, const HandledError& failed,
                                             std::string& why, Refusal& refusal) {
  bool may_be_outdated = true;  // the statement's plan, which is made anew once it has failed
  while (true) {
    THALWEG_ASSIGN(const Refusal refused, executor_.replace_row(transaction_, row.frame, failed, why));
    if (!refused) return why.empty();
    // The statement's own fault leaves the change to its policy; anything else is for the whole transaction.
    if (refused->handler == 0 || !is_about_data(final_error(*refused, transaction_).code)) {
      refusal = refused;
      return false;
    }
    if (!std::exchange(may_be_outdated, false) || !metadata::is_schema_change(refused->error.sqlstate)) {
      why = failed_handler(refused->handler, refused->error.message);
      return false;
    }
  }
}

// The row that the change met: of an INSERT the first with one of its unique keys; of an UPDATE that collides the one
// that it collides with; else the one that it was to change.
base::Result<std::optional<ConflictResolver::Texts>> ConflictResolver::find_row(const TableMetadata& table,
                                                                                const lcr::FrameView& frame,
                                                                                std::optional<ConflictKind> kind) {
  const bool inserts = frame.kind() == FrameKind::insert;
  const auto old = frame.old_tuple();
  THALWEG_ASSIGN(const Values values, read_values(old.exists() ? old : frame.new_tuple(), table, arena_));
  if (kind == ConflictKind::update_missing || kind == ConflictKind::delete_missing) return std::nullopt;
  if (inserts && kind != ConflictKind::insert_exists) return std::nullopt;
  THALWEG_ASSIGN(const auto own, look_up(table, table.identity, values));
  if (kind != ConflictKind::update_exists && (own || !inserts)) return own;
  THALWEG_ASSIGN(const Values wanted, read_values(frame.new_tuple(), table, arena_));
  for (const metadata::UniqueKey& key : table.unique_keys) {
    if (key.columns.empty()) continue;
    THALWEG_ASSIGN(const auto other, look_up(table, key.columns, wanted));
    const bool is_own = other && own && is_same_row(table, *own, *other);
    if (other && !is_own) return other;
  }
  return std::nullopt;
}

base::Result<std::optional<ConflictKind>> ConflictResolver::exact_kind(const TableMetadata& table,
                                                                       const lcr::FrameView& frame,
                                                                       std::optional<ConflictKind> general) {
  if (!is_of_unique_key(general)) return general;
  THALWEG_ASSIGN(const size_t keys, count_keys_met(table, frame, *general));
  return keys > 1 ? ConflictKind::multiple_unique_conflicts : general;
}

base::Result<size_t> ConflictResolver::count_keys_met(const TableMetadata& table, const lcr::FrameView& frame,
                                                      ConflictKind kind) {
  if (table.unique_keys.size() < 2) return 1;
  const auto old = frame.old_tuple();
  THALWEG_ASSIGN(const Values before, read_values(old.exists() ? old : frame.new_tuple(), table, arena_));
  THALWEG_ASSIGN(const Values wanted, read_values(frame.new_tuple(), table, arena_));
  std::optional<Texts> own;  // the row that the update changes
  if (kind == ConflictKind::update_exists) {
    THALWEG_ASSIGN(own, look_up(table, table.identity, before));
  }
  size_t met = 0;
  for (const metadata::UniqueKey& key : table.unique_keys) {
    if (met > 1) break;
    if (!key.is_whole) continue;
    THALWEG_ASSIGN(const auto other, look_up(table, key.columns, wanted));
    if (other && !(own && is_same_row(table, *own, *other))) ++met;
  }
  return met;
}

base::Result<std::optional<ConflictResolver::Texts>> ConflictResolver::look_up(const TableMetadata& table,
                                                                               std::span<const uint16_t> by,
                                                                               const lcr::Value* values) {
  const Statement statement = make_lookup(table, by, kLoggedCharactersMax);
  std::vector<pg::Parameter> parameters;
  for (size_t i = 0; i < statement.parameters.size(); ++i) {
    const lcr::Value& value = values[statement.parameters[i].column];
    if (value.mark == ValueMark::unchanged || (value.mark == ValueMark::null && !by.empty())) return std::nullopt;
    parameters.push_back(parameter_of(value, statement.types[i]));
  }
  session_.leave_pipeline();
  pg::Connection& connection = session_.connection();
  const auto rows = pg::query_guarded(connection, statement.sql, parameters);
  if (!rows && connection.broken()) return std::unexpected(rows.error());
  // A value that the destination's type does not know, say, is refused: then it has no such row.
  if (!rows || rows->size() == 0) return std::nullopt;
  Texts texts(table.columns.size());
  for (size_t row = 0; row < rows->size(); ++row) {
    if (rows->is_null(row, 1)) continue;
    auto& text = texts[static_cast<size_t>(rows->integer(row, 0))].emplace(rows->text(row, 1));
    if (text.size() < static_cast<uint64_t>(rows->integer(row, 2))) text += kCutMark;
  }
  return texts;
}

base::Result<void> ConflictResolver::record(const GroupExecutor::FailedRow& row, std::optional<ConflictKind> kind,
                                            const base::Error& error, std::string_view action,
                                            const std::optional<Texts>& there) {
  if (rights_.leave) THALWEG_TRY(rights_.leave());
  THALWEG_ASSIGN(bool recorded, try_to_record(row, kind, error, action, there, true));
  if (!recorded) {
    THALWEG_ASSIGN(recorded, try_to_record(row, kind, error, action, there, false));
  }
  if (recorded) return rights_.take ? rights_.take() : base::Result<void>{};
  return base::fail(ErrorCode::apply_failed,
                    "the conflict log did not take a change that was to be left out: " + error.message);
}

base::Result<bool> ConflictResolver::try_to_record(const GroupExecutor::FailedRow& row,
                                                   std::optional<ConflictKind> kind, const base::Error& error,
                                                   std::string_view action, const std::optional<Texts>& there,
                                                   bool written) {
  const TableMetadata& table = *row.failure.table;
  session_.leave_pipeline();
  pg::Connection& connection = session_.connection();
  Parameters parameters;
  const auto object = [&](const lcr::TupleView& tuple, bool key_only) -> base::Result<std::string> {
    if (!tuple.exists()) return "NULL";
    THALWEG_ASSIGN(const Values values, read_values(tuple, table, arena_));
    std::string pairs;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const metadata::Column& column = table.columns[i];
      const lcr::Value& value = values[i];
      // An old row that is a key has NULL in the other columns.
      if (value.mark == ValueMark::unchanged || (key_only && !column.source_key)) continue;
      // format() uses the type's output function, where a cast may have a form of its own.
      const std::string text =
          value.mark == ValueMark::null ? "NULL"
          : written ? fmt::format("pg_catalog.format('%s', {})", parameters.value(value, column.type->value_type))
                    : parameters.text(raw_text(value.bytes)) + "::text";
      pairs += (pairs.empty() ? "" : ", ") + pair_of(connection, column.name, text);
    }
    return object_of(pairs);
  };
  THALWEG_ASSIGN(const std::string old_row, object(row.frame.old_tuple(), !row.frame.has(lcr::kOldRow)));
  THALWEG_ASSIGN(const std::string new_row, object(row.frame.new_tuple(), false));
  std::string destination_row = there ? "" : "NULL";
  std::vector<std::string> names;
  std::vector<std::string> keys;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    names.push_back(table.columns[i].name);
    if (!there) continue;
    const auto& text = (*there)[i];
    destination_row +=
        (i == 0 ? "" : ", ") + pair_of(connection, names.back(), text ? parameters.text(*text) + "::text" : "NULL");
  }
  if (there) destination_row = object_of(destination_row);
  for (const uint16_t column : table.identity) keys.push_back(table.columns[column].name);
  const std::string sql = fmt::format(
      "INSERT INTO thalweg.conflict_log (stream_id, commit_lsn, commit_micros, xid, change, schema_name, table_name, "
      "operation, kind, sqlstate, message, action, column_names, key_columns, old_row, new_row, destination_row) "
      "VALUES ({}, {}::pg_lsn, {}, {}, {}, {}, {}, '{}', '{}', {}, {}, '{}', {}::text[], {}::text[], {}, {}, {})",
      parameters.text(stream_id_), parameters.text(base::to_string(transaction_.commit_lsn)),
      transaction_.commit_time.value, transaction_.xid.value, row.change, parameters.text(table.source.schema_name),
      parameters.text(table.source.table_name), operation_of(row.frame.kind()),
      kind ? telemetry::name_of(*kind) : std::string_view{}, parameters.text(error.sqlstate),
      parameters.text(error.message), action, parameters.text(pg::text_array(names)),
      parameters.text(pg::text_array(keys)), old_row, new_row, destination_row);
  const auto done = pg::query_guarded(connection, sql, parameters.list());
  if (done) return true;
  if (connection.broken() || !(is_about_data(done.error().code) || done.error().code == ErrorCode::database_error)) {
    return std::unexpected(done.error());
  }
  return false;
}

}  // namespace thalweg::apply
