#include "apply/conflict_log.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pg/bookkeeping_trust.h"

namespace thalweg::apply {

using telemetry::ConflictPart;
using telemetry::LoggedColumn;
using telemetry::LoggedConflict;
using telemetry::LoggedCount;

namespace {

constexpr uint64_t kPrunedMax = 5000;
constexpr std::string_view kNoConflict = "error";  // as ConflictPart::kind

base::Result<bool> log_exists(pg::Connection& connection) {
  return pg::trusted_bookkeeping(connection, {"conflict_log"});
}

std::string utc_text(std::string_view time) {
  return fmt::format("to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", time);
}

LoggedColumn::Value value_of(const pg::Rows& rows, size_t row, size_t first) {
  if (!rows.boolean(row, first)) return std::nullopt;
  if (rows.is_null(row, first + 1)) return std::optional<std::string>{};
  return std::optional(std::string(rows.text(row, first + 1)));
}

std::string which(const pg::Connection& connection, const ConflictPart& part) {
  std::string condition;
  if (part.before > 0) condition += fmt::format(" AND id < {}", part.before);
  if (!part.kind.empty()) {
    condition +=
        fmt::format(" AND kind = {}", connection.quote_literal(part.kind == kNoConflict ? std::string{} : part.kind));
  }
  if (!part.table_name.empty()) {
    condition += fmt::format(" AND schema_name = {} AND table_name = {}", connection.quote_literal(part.schema_name),
                             connection.quote_literal(part.table_name));
  }
  return condition;
}

// Of these entries, whose order is that of `ids`.
base::Result<void> add_columns(pg::Connection& connection, std::vector<LoggedConflict>& entries,
                               uint64_t characters_max) {
  if (entries.empty()) return {};
  std::string ids;
  for (const LoggedConflict& entry : entries) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", entry.id);
  std::string values;
  for (const char* row : {"old_row", "new_row", "destination_row"}) {
    values += fmt::format(", coalesce({0} ? name, false), left({0} ->> name, {1})", row, characters_max);
  }
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT id, name, name = ANY (key_columns){} FROM thalweg.conflict_log, "
                                              "unnest(column_names) WITH ORDINALITY AS listed (name, place) "
                                              "WHERE id IN ({}) ORDER BY id DESC, place",
                                              values, ids)));
  auto entry = entries.begin();
  for (size_t row = 0; row < rows.size(); ++row) {
    while (entry != entries.end() && entry->id != rows.integer(row, 0)) ++entry;
    if (entry == entries.end()) break;
    entry->columns.push_back({.name = std::string(rows.text(row, 1)),
                              .is_identity = rows.boolean(row, 2),
                              .before = value_of(rows, row, 3),
                              .wanted = value_of(rows, row, 5),
                              .there = value_of(rows, row, 7)});
  }
  return {};
}

}  // namespace

base::Result<std::vector<LoggedConflict>> list_conflicts(pg::Connection& connection, std::string_view stream_id,
                                                         const ConflictPart& part) {
  std::vector<LoggedConflict> entries;
  THALWEG_ASSIGN(const bool exists, log_exists(connection));
  if (!exists) return entries;
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query(
          fmt::format("SELECT id, commit_lsn, {}, xid, change, schema_name, table_name, operation, kind, sqlstate, "
                      "message, action, destination_row IS NOT NULL, {} FROM thalweg.conflict_log WHERE stream_id = $1"
                      "{} ORDER BY id DESC LIMIT {}",
                      utc_text("(to_timestamp(0) + commit_micros * interval '1 microsecond')"), utc_text("logged_at"),
                      which(connection, part), part.limit),
          {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    entries.push_back({.id = rows.integer(row, 0),
                       .commit_lsn = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{}),
                       .committed_at = std::string(rows.text(row, 2)),
                       .xid = {static_cast<uint32_t>(rows.integer(row, 3))},
                       .change = static_cast<uint64_t>(rows.integer(row, 4)),
                       .schema_name = std::string(rows.text(row, 5)),
                       .table_name = std::string(rows.text(row, 6)),
                       .operation = std::string(rows.text(row, 7)),
                       .kind = std::string(rows.text(row, 8)),
                       .sqlstate = std::string(rows.text(row, 9)),
                       .message = std::string(rows.text(row, 10)),
                       .action = std::string(rows.text(row, 11)),
                       .columns = {},
                       .has_row = rows.boolean(row, 12),
                       .logged_at = std::string(rows.text(row, 13))});
  }
  THALWEG_TRY(add_columns(connection, entries, part.characters_max));
  return entries;
}

base::Result<std::vector<LoggedCount>> count_conflicts(pg::Connection& connection, std::string_view stream_id) {
  std::vector<LoggedCount> counts;
  THALWEG_ASSIGN(const bool exists, log_exists(connection));
  if (!exists) return counts;
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query(
          fmt::format("SELECT schema_name, table_name, kind, CASE WHEN kind = '' THEN sqlstate ELSE '' END AS state, "
                      "action, count(*), {} FROM thalweg.conflict_log WHERE stream_id = $1 GROUP BY 1, 2, 3, 4, 5 "
                      "ORDER BY 6 DESC, 1, 2, 3, 4, 5 LIMIT {}",
                      utc_text("max(logged_at)"), telemetry::kConflictListMax),
          {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    counts.push_back({.schema_name = std::string(rows.text(row, 0)),
                      .table_name = std::string(rows.text(row, 1)),
                      .kind = std::string(rows.text(row, 2)),
                      .sqlstate = std::string(rows.text(row, 3)),
                      .action = std::string(rows.text(row, 4)),
                      .changes = static_cast<uint64_t>(rows.integer(row, 5)),
                      .newest = std::string(rows.text(row, 6))});
  }
  return counts;
}

base::Result<bool> prune_conflicts(pg::Connection& connection, std::string_view stream_id,
                                   std::chrono::days retention) {
  THALWEG_ASSIGN(const pg::Rows pruned,
                 connection.query(fmt::format("DELETE FROM thalweg.conflict_log WHERE id IN (SELECT id FROM "
                                              "thalweg.conflict_log WHERE stream_id = $1 AND logged_at < now() - "
                                              "$2::integer * interval '1 day' ORDER BY logged_at LIMIT {})",
                                              kPrunedMax),
                                  {stream_id, std::to_string(retention.count())}));
  return pruned.affected() == kPrunedMax;
}

}  // namespace thalweg::apply
