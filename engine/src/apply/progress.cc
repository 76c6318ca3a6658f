#include "apply/progress.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "apply/progress_recovery.h"
#include "pg/bookkeeping_trust.h"
#include "pg/transaction.h"

namespace thalweg::apply {

namespace {

using base::ErrorCode;

constexpr int kSchemaVersion = 1;
// A server process of an engine that has just died lets go of its lock when it notices.
constexpr int kLockTries = 50;
constexpr std::chrono::milliseconds kLockPause{100};

constexpr const char* kCreateTables = R"sql(
COMMENT ON SCHEMA thalweg IS 'Replication progress and error queue of Thalweg';
CREATE TABLE thalweg.schema_version (version integer NOT NULL);
CREATE TABLE thalweg.stream (
  stream_id text PRIMARY KEY,
  source_system_identifier text NOT NULL,
  source_timeline integer NOT NULL,
  source_database text NOT NULL,
  slot text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  start_lsn pg_lsn NOT NULL,
  low_watermark pg_lsn NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE thalweg.apply_progress (
  stream_id text NOT NULL,
  applier integer NOT NULL,
  epoch bigint NOT NULL,
  low_watermark pg_lsn NOT NULL,
  ranges bytea NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (stream_id, applier)
) WITH (fillfactor = 50);
CREATE TABLE thalweg.error_queue (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_id text NOT NULL,
  commit_lsn pg_lsn NOT NULL,
  end_lsn pg_lsn NOT NULL,
  commit_micros bigint NOT NULL,
  xid bigint NOT NULL,
  lcrs bigint NOT NULL,
  tables text[] NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  sqlstate text NOT NULL,
  hashes bytea NOT NULL,
  read_hashes bytea NOT NULL,
  table_hashes bytea NOT NULL,
  parent_hashes bytea NOT NULL DEFAULT '\x',
  referenced_hashes bytea NOT NULL DEFAULT '\x',
  edits jsonb NOT NULL DEFAULT '{}',
  failure jsonb NOT NULL DEFAULT '{}',
  parked_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (stream_id, commit_lsn)
);
CREATE TABLE thalweg.error_queue_chunk (
  error_id bigint NOT NULL REFERENCES thalweg.error_queue (id) ON DELETE CASCADE,
  chunk integer NOT NULL,
  frames bytea NOT NULL,
  first_change bigint,
  PRIMARY KEY (error_id, chunk)
);
INSERT INTO thalweg.schema_version VALUES (1);
)sql";

// Not a version of its own: an engine that does not know these columns neither reads nor needs them. Its parked changes
// may have been any row of its tables.
constexpr const char* kAddParentsToErrorQueue = R"sql(
ALTER TABLE thalweg.error_queue ADD COLUMN parent_hashes bytea NOT NULL DEFAULT '\x',
  ADD COLUMN referenced_hashes bytea NOT NULL DEFAULT '\x';
UPDATE thalweg.error_queue SET referenced_hashes = table_hashes;
)sql";

// No version of its own either: an engine that does not know it executes transactions as they came.
constexpr const char* kAddEditsToErrorQueue =
    "ALTER TABLE thalweg.error_queue ADD COLUMN edits jsonb NOT NULL DEFAULT '{}'";

// Decisions about single changes (conflict_log.h). No version of its own either.
constexpr const char* kCreateConflictLog = R"sql(
CREATE TABLE thalweg.conflict_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream_id text NOT NULL,
  commit_lsn pg_lsn NOT NULL,
  commit_micros bigint NOT NULL,
  xid bigint NOT NULL,
  change bigint NOT NULL,
  schema_name text NOT NULL,
  table_name text NOT NULL,
  operation text NOT NULL,
  kind text NOT NULL,
  sqlstate text NOT NULL,
  message text NOT NULL,
  action text NOT NULL,
  column_names text[] NOT NULL,
  key_columns text[] NOT NULL,
  old_row jsonb,
  new_row jsonb,
  destination_row jsonb,
  logged_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX conflict_log_order ON thalweg.conflict_log (stream_id, id);
CREATE INDEX conflict_log_age ON thalweg.conflict_log (stream_id, logged_at);
)sql";

// Nor this: an engine that does not know where a transaction failed, or where its pieces begin, leaves both unknown.
constexpr const char* kAddFailureToErrorQueue = R"sql(
ALTER TABLE thalweg.error_queue ADD COLUMN failure jsonb NOT NULL DEFAULT '{}';
ALTER TABLE thalweg.error_queue_chunk ADD COLUMN first_change bigint;
)sql";

// By which the data layer finds an applier's row, or none when another engine has taken the stream over. No version of
// its own either.
constexpr const char* kAddEpochIndex =
    "CREATE UNIQUE INDEX apply_progress_epoch ON thalweg.apply_progress (stream_id, applier, epoch)";

base::Result<bool> schema_exists(pg::Connection& connection) {
  return pg::trusted_bookkeeping(connection, {"schema_version"});
}

base::Lsn lsn_of(const pg::Rows& rows, size_t row, size_t column) {
  return base::parse_lsn(rows.text(row, column)).value_or(base::Lsn{});
}

base::Result<void> delete_rows(pg::Connection& connection, std::string_view stream_id) {
  for (const char* table : {"stream", "apply_progress", "error_queue"}) {
    THALWEG_TRY(connection.query(fmt::format("DELETE FROM thalweg.{} WHERE stream_id = $1", table), {stream_id}));
  }
  THALWEG_ASSIGN(const bool has_log, pg::trusted_bookkeeping(connection, {"conflict_log"}));
  if (has_log) THALWEG_TRY(connection.query("DELETE FROM thalweg.conflict_log WHERE stream_id = $1", {stream_id}));
  return {};
}

base::Result<void> drop_schema_if_unused(pg::Connection& connection) {
  THALWEG_ASSIGN(const pg::Rows streams, connection.query("SELECT count(*) FROM thalweg.stream"));
  if (streams.integer(0, 0) > 0) return {};
  THALWEG_TRY(connection.script(
      "DROP TABLE IF EXISTS thalweg.conflict_log; DROP TABLE thalweg.error_queue_chunk, thalweg.error_queue, "
      "thalweg.apply_progress, thalweg.stream, thalweg.schema_version"));
  // Relations, functions, types: a role named thalweg may have made some here without wanting to.
  THALWEG_ASSIGN(const pg::Rows others,
                 connection.query("SELECT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE refclassid = "
                                  "'pg_namespace'::regclass AND refobjid = 'thalweg'::regnamespace)"));
  if (others.boolean(0, 0)) return {};
  THALWEG_TRY(connection.script("DROP SCHEMA thalweg"));
  return {};
}

}  // namespace

base::Result<void> ensure_schema(pg::Connection& connection) {
  return pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_TRY(pg::lock_bookkeeping(connection));
    THALWEG_ASSIGN(const bool exists, schema_exists(connection));
    if (!exists) {
      THALWEG_TRY(pg::create_bookkeeping_schema(connection));
      THALWEG_TRY(connection.script(kCreateTables));
      THALWEG_TRY(connection.script(kAddEpochIndex));
      THALWEG_TRY(connection.script(kCreateConflictLog));
      THALWEG_TRY(schema_exists(connection));  // somebody else may have made the schema
      return {};
    }
    THALWEG_ASSIGN(const pg::Rows version,
                   connection.query("SELECT max(version), EXISTS (SELECT FROM pg_catalog.pg_attribute "
                                    "WHERE attrelid = 'thalweg.error_queue'::pg_catalog.regclass "
                                    "AND attname = 'parent_hashes'), EXISTS (SELECT FROM pg_catalog.pg_class "
                                    "WHERE relnamespace = 'thalweg'::pg_catalog.regnamespace "
                                    "AND relname = 'apply_progress_epoch'), EXISTS (SELECT FROM "
                                    "pg_catalog.pg_attribute WHERE attrelid = "
                                    "'thalweg.error_queue'::pg_catalog.regclass AND attname = 'edits'), EXISTS (SELECT "
                                    "FROM pg_catalog.pg_class WHERE relnamespace = 'thalweg'::pg_catalog.regnamespace "
                                    "AND relname = 'conflict_log'), EXISTS (SELECT FROM "
                                    "pg_catalog.pg_attribute WHERE attrelid = "
                                    "'thalweg.error_queue'::pg_catalog.regclass AND attname = 'failure') "
                                    "FROM thalweg.schema_version"));
    if (version.integer(0, 0) > kSchemaVersion) {
      return base::fail(ErrorCode::unsupported_version,
                        fmt::format("schema thalweg at the destination has version {}, this engine knows {}",
                                    version.integer(0, 0), kSchemaVersion),
                        base::ErrorSide::destination);
    }
    if (!version.boolean(0, 1)) THALWEG_TRY(connection.script(kAddParentsToErrorQueue));
    if (!version.boolean(0, 2)) THALWEG_TRY(connection.script(kAddEpochIndex));
    if (!version.boolean(0, 3)) THALWEG_TRY(connection.script(kAddEditsToErrorQueue));
    if (!version.boolean(0, 4)) THALWEG_TRY(connection.script(kCreateConflictLog));
    if (!version.boolean(0, 5)) THALWEG_TRY(connection.script(kAddFailureToErrorQueue));
    return {};
  });
}

base::Result<void> register_stream(pg::Connection& connection, const StreamRecord& record) {
  return pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_TRY(delete_rows(connection, record.stream_id));
    THALWEG_TRY(connection.query(
        "INSERT INTO thalweg.stream (stream_id, source_system_identifier, source_timeline, source_database, slot, "
        "start_lsn, low_watermark) VALUES ($1, $2, $3::integer, $4, $5, $6::pg_lsn, $6::pg_lsn)",
        {record.stream_id, record.source_system_identifier, std::to_string(record.source_timeline),
         record.source_database, record.slot, base::to_string(record.start_lsn)}));
    return {};
  });
}

base::Result<std::optional<StreamRecord>> find_stream(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const bool exists, schema_exists(connection));
  if (!exists) return std::nullopt;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT s.source_system_identifier, s.source_timeline, s.source_database, s.slot, "
                                  "s.start_lsn, greatest(s.low_watermark, (SELECT max(p.low_watermark) "
                                  "FROM thalweg.apply_progress p WHERE p.stream_id = s.stream_id)) "
                                  "FROM thalweg.stream s WHERE s.stream_id = $1",
                                  {stream_id}));
  if (rows.size() == 0) return std::nullopt;
  return StreamRecord{.stream_id = std::string(stream_id),
                      .source_system_identifier = std::string(rows.text(0, 0)),
                      .source_timeline = static_cast<int>(rows.integer(0, 1)),
                      .source_database = std::string(rows.text(0, 2)),
                      .slot = std::string(rows.text(0, 3)),
                      .start_lsn = lsn_of(rows, 0, 4),
                      .low_watermark = lsn_of(rows, 0, 5)};
}

base::Result<void> forget_stream(pg::Connection& connection, std::string_view stream_id) {
  return pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_TRY(pg::lock_bookkeeping(connection));
    THALWEG_ASSIGN(const bool exists, schema_exists(connection));
    if (!exists) return {};
    THALWEG_TRY(delete_rows(connection, stream_id));
    return drop_schema_if_unused(connection);
  });
}

namespace {

base::Result<bool> lock_stream(pg::Connection& connection, std::string_view stream_id, LockSpan span) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT pg_catalog.pg_try_advisory_{}lock("
                                              "pg_catalog.hashtextextended('thalweg stream ' || $1, 0))",
                                              span == LockSpan::session ? "" : "xact_"),
                                  {stream_id}));
  return rows.boolean(0, 0);
}

base::Result<std::string> stream_lock_holder(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query("SELECT pg_catalog.format('server process %s of user %s, connected from %s since %s', "
                       "a.pid, a.usename, coalesce(pg_catalog.host(a.client_addr), 'its own host'), "
                       "pg_catalog.date_trunc('second', a.backend_start)) "
                       "FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid) "
                       "WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database() AND "
                       "(l.classid::bigint << 32 | l.objid::bigint) = "
                       "pg_catalog.hashtextextended('thalweg stream ' || $1, 0)",
                       {stream_id}));
  return rows.size() == 0 ? "a session that has just ended" : std::string(rows.text(0, 0));
}

// The only row of the stream's progress.
base::Result<void> put_progress(pg::Connection& connection, std::string_view stream_id, const Recovered& recovered) {
  THALWEG_TRY(connection.query("DELETE FROM thalweg.apply_progress WHERE stream_id = $1", {stream_id}));
  const auto encoded = recovered.applied.encode();
  const std::string epoch = std::to_string(recovered.epoch);
  const std::string low_watermark = base::to_string(recovered.low_watermark);
  const std::array parameters{pg::text_parameter(stream_id), pg::text_parameter(epoch),
                              pg::text_parameter(low_watermark),
                              pg::Parameter{.bytes = encoded, .type = {17}, .is_binary = true}};
  THALWEG_TRY(
      connection.query("INSERT INTO thalweg.apply_progress (stream_id, applier, epoch, low_watermark, ranges) "
                       "VALUES ($1, 0, $2::bigint, $3::pg_lsn, $4)",
                       parameters));
  THALWEG_TRY(
      connection.query("UPDATE thalweg.stream SET low_watermark = $2::pg_lsn, recorded_at = now() "
                       "WHERE stream_id = $1",
                       {stream_id, low_watermark}));
  return {};
}

// Within the caller's transaction.
base::Result<Recovered> begin_epoch(pg::Connection& connection, std::string_view stream_id) {
  Recovered recovered;
  THALWEG_ASSIGN(const pg::Rows stream,
                 connection.query("UPDATE thalweg.stream SET epoch = epoch + 1 WHERE stream_id = $1 "
                                  "RETURNING epoch, low_watermark",
                                  {stream_id}));
  if (stream.size() == 0) {
    return base::fail(ErrorCode::unknown_stream,
                      fmt::format("the destination's thalweg.stream has no stream {}", stream_id));
  }
  recovered.epoch = stream.integer(0, 0);
  recovered.low_watermark = lsn_of(stream, 0, 1);
  // Waits for a transaction that a dead engine's server process may still be committing; see README.md.
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT low_watermark, ranges FROM thalweg.apply_progress WHERE stream_id = $1 "
                                  "ORDER BY applier FOR UPDATE",
                                  {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    recovered.low_watermark = std::max(recovered.low_watermark, lsn_of(rows, row, 0));
    THALWEG_ASSIGN(const LsnRanges ranges, LsnRanges::decode_hex(rows.text(row, 1)));
    for (const LsnRange& range : ranges.list()) recovered.applied.add(range);
  }
  recovered.applied.prune(recovered.low_watermark);
  THALWEG_TRY(put_progress(connection, stream_id, recovered));
  return recovered;
}

// Gives whether the progress has to go back to the end.
base::Result<bool> check_below(const TimelineSwitch& turn, const Recovered& recovered) {
  const auto ranges = recovered.applied.list();
  const base::Lsn applied = ranges.empty() ? recovered.low_watermark : ranges.back().end;
  const base::Lsn reached = std::max(applied, turn.copied_to);
  if (reached <= turn.end) return false;
  if (turn.check_beyond && turn.copied_to <= turn.end) {
    THALWEG_TRY(turn.check_beyond(applied));
    return true;
  }
  base::Error error =
      base::fail(ErrorCode::source_diverged,
                 fmt::format("The source is on timeline {}, which left timeline {} at {}. The destination has {} up to "
                             "{}, {} bytes of WAL further: it may hold what this server has never had.",
                             turn.to, turn.from, base::to_string(turn.end),
                             turn.copied_to > applied ? "copies of tables" : "applied changes",
                             base::to_string(reached), reached.value - turn.end.value))
          .error();
  error.lsn = turn.end;
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<void> take_lock(pg::Connection& connection, std::string_view stream_id, LockSpan span) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    THALWEG_ASSIGN(const bool locked, lock_stream(connection, stream_id, span));
    if (locked) return {};
    std::this_thread::sleep_for(kLockPause);
  }
  THALWEG_ASSIGN(const std::string holder, stream_lock_holder(connection, stream_id));
  return base::fail(ErrorCode::stream_in_use,
                    fmt::format("stream {} is locked at the destination by {}", stream_id, holder));
}

base::Result<Recovered> recover_progress(pg::Connection& connection, std::string_view stream_id) {
  Recovered recovered;
  THALWEG_TRY(pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_ASSIGN(recovered, begin_epoch(connection, stream_id));
    return {};
  }));
  return recovered;
}

base::Result<void> follow_timeline(pg::Connection& connection, std::string_view stream_id, const TimelineSwitch& turn) {
  return pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_TRY(take_lock(connection, stream_id, LockSpan::transaction));
    THALWEG_ASSIGN(Recovered recovered, begin_epoch(connection, stream_id));
    THALWEG_ASSIGN(const bool goes_back, check_below(turn, recovered));
    if (goes_back) {
      recovered.low_watermark = std::min(recovered.low_watermark, turn.end);
      const LsnRanges reached = std::exchange(recovered.applied, {});
      for (const LsnRange& range : reached.list()) {
        if (range.first < turn.end) recovered.applied.add({range.first, std::min(range.end, turn.end)});
      }
      THALWEG_TRY(put_progress(connection, stream_id, recovered));
    }
    THALWEG_ASSIGN(const pg::Rows updated,
                   connection.query("UPDATE thalweg.stream SET source_timeline = $2::integer WHERE stream_id = $1 "
                                    "AND source_timeline = $3::integer",
                                    {stream_id, std::to_string(turn.to), std::to_string(turn.from)}));
    if (updated.affected() == 1) return {};
    return base::fail(ErrorCode::stream_in_use, "Somebody else has recorded another timeline meanwhile");
  });
}

}  // namespace thalweg::apply
