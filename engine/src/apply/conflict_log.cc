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
using telemetry::LoggedConflicts;
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

// Adds the columns of these entries, and takes away those for which the page has no room: an entry has columns.
base::Result<void> add_columns(pg::Connection& connection, LoggedConflicts& page, uint64_t characters_max,
                               uint64_t page_bytes_max) {
  std::vector<LoggedConflict>& entries = page.conflicts;
  if (entries.empty()) return {};
  std::string ids;
  for (const LoggedConflict& entry : entries) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", entry.id);
  // Each row is taken apart once: finding every column in it would read a wide one as often as it has columns.
  std::string parts;
  std::string values;
  std::string joins;
  std::string all_values;
  for (const char* row : {"old_row", "new_row", "destination_row"}) {
    parts += fmt::format(
        ", of_{0} AS MATERIALIZED (SELECT id, key, left(value, {1}) AS value FROM entry, jsonb_each_text({0}))", row,
        characters_max);
    values += fmt::format(", of_{0}.key IS NOT NULL, of_{0}.value", row);
    joins += fmt::format(" LEFT JOIN of_{0} ON of_{0}.id = entry.id AND of_{0}.key = name", row);
    all_values += fmt::format("{}SELECT id, value FROM of_{}", all_values.empty() ? "" : " UNION ALL ", row);
  }
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query(fmt::format(
          "WITH entry AS MATERIALIZED (SELECT id, column_names, key_columns, old_row, new_row, destination_row FROM "
          "thalweg.conflict_log WHERE id IN ({})){}, size AS (SELECT id, sum(octet_length(value)) AS bytes FROM ({}) "
          "AS "
          "part GROUP BY id), page AS MATERIALIZED (SELECT id FROM (SELECT entry.id, sum(bytes) OVER (ORDER BY "
          "entry.id "
          "DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM entry LEFT JOIN size ON size.id = "
          "entry.id) AS placed WHERE coalesce(before, 0) < {}) SELECT entry.id, name, name = ANY (key_columns){} FROM "
          "entry JOIN page ON page.id = entry.id CROSS JOIN LATERAL unnest(column_names) WITH ORDINALITY AS listed "
          "(name, place){} ORDER BY entry.id DESC, place",
          ids, parts, all_values, page_bytes_max, values, joins)));
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
  while (entries.size() > 1 && entries.back().columns.empty()) {
    entries.pop_back();
    page.more = true;
  }
  return {};
}

}  // namespace

base::Result<LoggedConflicts> list_conflicts(pg::Connection& connection, std::string_view stream_id,
                                             const ConflictPart& part, uint64_t page_bytes_max) {
  LoggedConflicts page;
  THALWEG_ASSIGN(const bool exists, log_exists(connection));
  if (!exists) return page;
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
    page.conflicts.push_back({.id = rows.integer(row, 0),
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
  page.more = page.conflicts.size() >= part.limit;
  THALWEG_TRY(add_columns(connection, page, part.characters_max, page_bytes_max));
  return page;
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
