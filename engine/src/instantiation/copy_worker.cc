#include "instantiation/copy_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "instantiation/bookkeeping.h"
#include "instantiation/ddl.h"
#include "instantiation/destination_schema.h"
#include "transform/keyed_hash.h"

namespace thalweg::instantiation {
namespace {

constexpr const char* kStaging = "thalweg_range";   // temporary table of a resumed range
constexpr size_t kMessageBytes = size_t{64} << 10;  // the source sends a message for each row
// Rows are read as fast as the destination takes them: behind a lock there the window is closed for long, for which the
// source's kernel would end the session.
constexpr const char* kReadAtTheDestinationsPace = "-c tcp_user_timeout=0";

base::Result<pg::Connection> open_session(const base::Conninfo& conninfo, const CopyOptions& of,
                                          const std::atomic<bool>* abandon, std::string settings = {}) {
  pg::ConnectOptions options;
  options.session_settings = std::move(settings);
  options.application_name = copy_application_name(of.stream_id);
  options.abandon = abandon;
  options.board = of.board;
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  THALWEG_TRY(connection.script(
      "SET search_path = ''; SET row_security = off; SET statement_timeout = 0; SET lock_timeout = 0; "
      "SET idle_in_transaction_session_timeout = 0"));
  return connection;
}

// Rules are evaluated by the source while it reads, and end its COPY where PostgreSQL cannot compute them. Other data
// exceptions of reading are about encodings.
base::Error failed_read(base::Error error, const CopyTable& table) {
  const bool is_of_data = error.sqlstate.starts_with("22") && error.sqlstate != "22021" && error.sqlstate != "22P05";
  const bool is_ruled = !table.row_filter.empty();
  const bool is_computed = table.sent != nullptr && table.sent->computes;
  if ((!is_ruled && !is_computed) || !is_of_data) return error;
  error.code = is_computed ? base::ErrorCode::transformation_refused : base::ErrorCode::rule_failed;
  error.table = table.shape->name.quoted();
  const std::string_view what = !is_computed ? "A rule"
                                : is_ruled   ? "A rule or an expression"
                                             : "An expression or a cast";
  // PostgreSQL's message may quote a value that is to be masked.
  error.message = fmt::format("{} of {} failed on a row to copy: {}", what, error.table,
                              table.sent == nullptr ? error.message
                                                    : "the table has transformations, and the values "
                                                      "of its rows are not told");
  return error;
}

}  // namespace

std::string copy_application_name(const std::string& stream_id) { return "thalweg copy " + stream_id; }

std::unexpected<base::Error> interrupted() {
  return base::fail(base::ErrorCode::engine_stopping, "The initial copy was interrupted; it goes on at the next start");
}

// Adds to the table's counters while a range is under way, and takes it back when the range fails.
class CopyWorker::RangeCount {
 public:
  explicit RangeCount(TableCounters& counters) : counters_(counters) {}
  RangeCount(const RangeCount&) = delete;
  RangeCount& operator=(const RangeCount&) = delete;
  ~RangeCount() {
    if (!kept_) set(0, 0);
  }
  void set(int64_t rows, int64_t bytes) {
    counters_.rows += rows - rows_;
    counters_.bytes += bytes - bytes_;
    rows_ = rows;
    bytes_ = bytes;
  }
  void keep() { kept_ = true; }
  int64_t bytes() const { return bytes_; }

 private:
  TableCounters& counters_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
  bool kept_ = false;
};

base::Result<void> CopyWorker::open_destination() {
  if (destination_) return {};
  THALWEG_ASSIGN(pg::Connection connection,
                 open_session(options_.destination_conninfo, options_, &abandon_destination_));
  // A server that crashes forgets the last commits whole and in their order: a range with the note that it is copied,
  // an index with what it covers. The transaction that records a table as complete commits after them and waits for the
  // disk.
  THALWEG_TRY(connection.script(
      fmt::format("SET synchronous_commit = off; SELECT set_config('maintenance_work_mem', greatest(setting::bigint, "
                  "{})::text, false) FROM pg_catalog.pg_settings WHERE name = 'maintenance_work_mem'",
                  options_.index_memory_mb * 1024)));
  destination_ = std::move(connection);
  return {};
}

base::Result<void> CopyWorker::open_source(const Snapshot& snapshot) {
  std::string settings = kReadAtTheDestinationsPace;
  if (!options_.mask_key.empty()) settings += " " + transform::session_settings(options_.mask_key);
  THALWEG_ASSIGN(pg::Connection connection,
                 open_session(options_.source_conninfo, options_, &abandon_source_, std::move(settings)));
  THALWEG_TRY(
      connection.script(fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
                                    connection.quote_literal(snapshot.name))));
  source_ = std::move(connection);
  shown_.clear();
  snapshot_lsn_ = snapshot.consistent_point;
  return {};
}

std::vector<pg::Connection::Canceller> CopyWorker::cancellers() const {
  std::vector<pg::Connection::Canceller> both;
  if (source_) both.push_back(source_->canceller());
  if (destination_) both.push_back(destination_->canceller());
  return both;
}

// A table that was truncated or rewritten after the snapshot is empty in it, rows that it should show included: their
// old versions went with the old file. pg_class is read as the snapshot has it, pg_relation_filenode() and
// to_regclass() answer from the catalog as it is now; the lock, which the transaction keeps, makes that last.
base::Result<bool> CopyWorker::snapshot_shows(const TableShape& table) {
  if (shown_.contains(table.oid)) return true;
  THALWEG_ASSIGN(
      const pg::Rows rows,
      source_->script(fmt::format(
          "SELECT FROM {} LIMIT 0; "
          "WITH RECURSIVE part (oid) AS (SELECT {}::oid UNION ALL SELECT i.inhrelid FROM part JOIN "
          "pg_catalog.pg_inherits i ON i.inhparent = part.oid AND NOT i.inhdetachpending WHERE {}) "
          "SELECT coalesce(pg_catalog.to_regclass({})::oid = {}::oid, false) AND NOT EXISTS (SELECT FROM part JOIN "
          "pg_catalog.pg_class c USING (oid) WHERE pg_catalog.pg_relation_filenode(c.oid) IS DISTINCT FROM "
          "nullif(c.relfilenode, 0)) AND EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = {}::oid)",
          read_from(table), table.oid, table.kind == 'p', source_->quote_literal(table.name.quoted()), table.oid,
          table.oid)));
  if (rows.boolean(0, 0)) shown_.insert(table.oid);
  return rows.boolean(0, 0);
}

base::Result<int64_t> CopyWorker::stream(const CopyTable& table, const RangeStep& step, RangeCount& count,
                                         const std::atomic<bool>& stop) {
  const std::string columns = column_list(copied_columns(*table.there));
  const std::string& read = table.sent == nullptr ? columns : table.sent->select;
  const std::string there = table.there->name.quoted();
  const char* format = table.text ? "text" : "binary";
  const std::string target = table.resumed ? fmt::format("pg_temp.{}", kStaging) : there;
  if (table.resumed) {
    THALWEG_TRY(
        destination_->script(fmt::format("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO "
                                         "DATA",
                                         kStaging, columns, there)));
  }
  THALWEG_ASSIGN(const std::string condition, range_condition(*source_, *table.shape, step.range, table.row_filter));
  THALWEG_TRY(source_->copy_out_begin(fmt::format("COPY (SELECT {} FROM {}{}) TO STDOUT (FORMAT {})", read,
                                                  read_from(*table.shape), condition, format)));
  THALWEG_TRY(destination_->copy_in_begin(fmt::format("COPY {} ({}) FROM STDIN (FORMAT {})", target, columns, format)));
  int64_t rows = 0;
  int64_t bytes = 0;
  std::vector<std::byte> message;
  message.reserve(2 * kMessageBytes);
  const auto put = [&]() -> base::Result<void> {
    count.set(rows, bytes);
    auto sent = destination_->copy_in_put(message);
    message.clear();
    return sent;
  };
  while (true) {
    auto row = source_->copy_out_next();
    if (!row) {
      destination_->copy_in_fail("the source failed");
      return std::unexpected(failed_read(std::move(row).error(), table));
    }
    if (!*row) break;
    message.insert(message.end(), (*row)->begin(), (*row)->end());
    ++rows;
    bytes += static_cast<int64_t>((*row)->size());
    if (message.size() < kMessageBytes) continue;
    THALWEG_TRY(put());
    if (stop) {
      destination_->copy_in_fail("the engine stops");
      return interrupted();
    }
  }
  THALWEG_TRY(put());
  THALWEG_ASSIGN(uint64_t copied, destination_->copy_in_end());
  return static_cast<int64_t>(copied);
}

// A row of this range can be at the destination already, under the key that it had in an earlier snapshot's range.
base::Result<void> CopyWorker::merge(const TableShape& table) {
  const std::string columns = column_list(copied_columns(table));
  if (const ConstraintShape* key = table.primary_key()) {
    std::string same;
    for (const std::string& column : key->columns) {
      std::string name = pg::quote_identifier(column);
      same += fmt::format("{}t.{} = r.{}", same.empty() ? "" : " AND ", name, name);
    }
    THALWEG_TRY(destination_->script(
        fmt::format("DELETE FROM {} t USING pg_temp.{} r WHERE {}", table.name.quoted(), kStaging, same)));
  }
  THALWEG_TRY(destination_->script(fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM pg_temp.{}",
                                               table.name.quoted(), columns, columns, kStaging)));
  return {};
}

base::Result<bool> CopyWorker::copy(const CopyTable& table, const RangeStep& step, const std::atomic<bool>& stop) {
  THALWEG_ASSIGN(const bool is_shown, snapshot_shows(*table.shape));
  if (!is_shown) return false;
  progress_.begin_table(*table.counters);
  RangeCount count(*table.counters);
  THALWEG_TRY(destination_->script("BEGIN; SET LOCAL session_replication_role = replica"));
  THALWEG_ASSIGN(int64_t rows, stream(table, step, count, stop));
  if (table.resumed) THALWEG_TRY(merge(*table.there));
  count.set(rows, count.bytes());
  Bookkeeping bookkeeping(*destination_, options_.stream_id);
  THALWEG_TRY(bookkeeping.range_copied(table.shape->name, step.number, snapshot_lsn_, rows, count.bytes()));
  THALWEG_TRY(destination_->script("COMMIT"));
  count.keep();
  if (table.counters->ranges_copied.fetch_add(1) + 1 == table.counters->ranges_total)
    progress_.end_rows(*table.counters);
  return true;
}

base::Result<void> CopyWorker::build(const CopyTable& table, const BuildStep& step) {
  std::string script;  // one transaction
  for (const Statement& statement : step) {
    THALWEG_TRY(statement.check_alone());
    script += statement.sql + ";\n";
  }
  if (const auto built = destination_->script(script); !built) {
    if (destination_->broken() || !is_refusal(built.error())) return std::unexpected(built.error());
    for (const Statement& statement : step) THALWEG_TRY(build_alone(statement));
  }
  progress_.add_built(*table.counters, std::ranges::count_if(step, [](const Statement& statement) {
    return statement.part != Part::replica_identity && statement.part != Part::statistics;
  }));
  return {};
}

base::Result<void> CopyWorker::build_alone(const Statement& statement) {
  auto tried = destination_->script(statement.sql);
  if (tried) return {};
  base::Error& error = tried.error();
  if (destination_->broken() || !is_refusal(error)) return std::unexpected(std::move(error));
  if (statement.is_essential()) {
    error.message = fmt::format("{} cannot be made: {}", statement.in_words(), error.message);
    error.table = statement.table.quoted();
    return std::unexpected(std::move(error));
  }
  const std::string warning = fmt::format("{} left out: {}", statement.in_words(), error.message);
  THALWEG_TRY(Bookkeeping(*destination_, options_.stream_id).warn(warning));
  progress_.warn(warning);
  return {};
}

}  // namespace thalweg::instantiation
