#include "apply/error_queue.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/group_executor.h"
#include "apply/applier/parking.h"
#include "apply/data_error.h"
#include "apply/parked_edits.h"
#include "apply/parked_execution.h"
#include "apply/parked_failure.h"
#include "apply/parked_frames.h"
#include "apply/progress.h"
#include "apply/row_errors.h"
#include "base/log.h"
#include "pg/bookkeeping_trust.h"
#include "pg/text_array.h"
#include "pg/transaction.h"

namespace thalweg::apply {

using base::ErrorCode;
using telemetry::ParkedCause;
using telemetry::ParkedChoice;
using telemetry::ParkedPart;
using telemetry::ParkedTransaction;

namespace {

constexpr size_t kPageTransactions = 256;
constexpr size_t kHeldTransactionsMax = 256;  // that apply waits for
// A session whose engine has died lets go when its server process notices.
constexpr std::chrono::milliseconds kHoldPatience{2400};
constexpr std::chrono::milliseconds kHoldPause{200};

// The next ones may go through all the same, unless they stand behind it.
bool stays_alone(ErrorCode code) {
  return is_about_data(code) || code == ErrorCode::database_busy || code == ErrorCode::missing_table ||
         code == ErrorCode::unknown_error_transaction || code == ErrorCode::insufficient_privilege;
}

base::Result<bool> queue_exists(pg::Connection& connection) {
  return pg::trusted_bookkeeping(connection, {"error_queue"});
}

std::string utc_text(std::string_view time) {
  return fmt::format("to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", time);
}

// `failed`: where it failed, looked up once for each.
const std::string kFromParked =
    fmt::format("FROM thalweg.error_queue q, LATERAL (SELECT {} AS failed OFFSET 0) known", kFailureOfQ);

const std::string kSelectParked = fmt::format(
    "SELECT id, commit_lsn, xid, lcrs, tables, code, message, sqlstate, {0}, "
    "(SELECT count(*) FROM jsonb_each({1}) AS change (number, edit) WHERE edit ? 'values'), "
    "(SELECT count(*) FROM jsonb_each({1}) AS change (number, edit) WHERE edit ? 'left_out'), coalesce((failed ->> "
    "'change')::bigint, 0), "
    "to_hex(hashtextextended({1}::text, 0)), coalesce(failed ->> 'constraint', '') "
    "{2} WHERE stream_id = $1",
    utc_text("parked_at"), kEditsOfQ, kFromParked);

// A cause, over kFromParked. The failure names the table, or it is the transaction's only one; the failure names
// constraints, columns and types, too. An older engine did not keep the failure: then the table comes from the engine's
// own words in the message (row_errors.h), and the others from the server's, if those are English. A text's length
// limit is in no field of the server's. Of a row that is not as it should be, the object is the engine's words.
constexpr std::string_view kQuotedTable = R"re("(?:[^"]|"")+"\."(?:[^"]|"")+")re";
const std::string kTableOfCause = fmt::format(
    "coalesce(failed ->> 'table', substring(message FROM '^(?:{1}|{2}|{3}) ({0})'), "
    "substring(message FROM 'in a change of ({0}), commit LSN [0-9A-F/]+$'), CASE WHEN cardinality(tables) = 1 AND "
    "code NOT IN ('parked_behind', 'parked_freed') THEN "
    "tables[1] END, '')",
    kQuotedTable, kInsertInto, kUpdateOf, kDeleteFrom);
const std::string kObjectOfCause = fmt::format(R"sql(coalesce(
  failed ->> 'constraint', failed ->> 'column', failed ->> 'type',
  CASE WHEN sqlstate = '22001' THEN substring(message FROM 'too long for type ([a-z ]+\([0-9]+\))')
       WHEN sqlstate ~ '^(23|42)' THEN substring(message FROM '(?:constraint|column) "([^"]+)"')
       WHEN sqlstate = '' THEN substring(message FROM $re$, commit LSN [0-9A-F/]+: ({}|{}|{})$re$) END, ''))sql",
                                               kRowDiffers, kUnwritten, kSeveralRows);
const std::string kCauseId = fmt::format("to_hex(hashtextextended(concat_ws(chr(31), code, sqlstate, {}, {}), 0))",
                                         kTableOfCause, kObjectOfCause);

constexpr std::string_view kIsRoot =
    "(code <> 'parked_behind' OR commit_lsn = (SELECT min(commit_lsn) FROM thalweg.error_queue WHERE stream_id = $1))";

ParkedTransaction read_entry(const pg::Rows& rows, size_t row) {
  return {.id = rows.integer(row, 0),
          .commit_lsn = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{}),
          .xid = {static_cast<uint32_t>(rows.integer(row, 2))},
          .lcrs = static_cast<uint64_t>(rows.integer(row, 3)),
          .tables = pg::parse_text_array(rows.text(row, 4)),
          .code = std::string(rows.text(row, 5)),
          .message = std::string(rows.text(row, 6)),
          .sqlstate = std::string(rows.text(row, 7)),
          .constraint = std::string(rows.text(row, 13)),
          .parked_at = std::string(rows.text(row, 8)),
          .edited = static_cast<uint64_t>(rows.integer(row, 9)),
          .left_out = static_cast<uint64_t>(rows.integer(row, 10)),
          .failed_change = static_cast<uint64_t>(rows.integer(row, 11)),
          .edits_version = std::string(rows.text(row, 12))};
}

using Entries = std::vector<std::unique_ptr<ParkedEntry>>;

// Oldest first. Their frames are not loaded.
base::Result<Entries> load_entries(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT id, commit_lsn, end_lsn, commit_micros, xid, lcrs, hashes, read_hashes, "
                                  "table_hashes, parent_hashes, referenced_hashes, code, coalesce(tables, '{}')::text, "
                                  "edits::text FROM thalweg.error_queue WHERE stream_id = $1 ORDER BY commit_lsn",
                                  {stream_id}));
  Entries entries;
  for (size_t row = 0; row < rows.size(); ++row) {
    auto entry = std::make_unique<ParkedEntry>();
    entry->id = rows.integer(row, 0);
    entry->tables = rows.text(row, 12);
    entry->waits = rows.text(row, 11) == base::name_of(ErrorCode::parked_behind);
    THALWEG_ASSIGN(entry->edits, parse_edits(rows.text(row, 13)));
    Transaction& transaction = entry->transaction;
    transaction.commit_lsn = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{});
    transaction.end_lsn = base::parse_lsn(rows.text(row, 2)).value_or(base::Lsn{});
    transaction.commit_time = {rows.integer(row, 3)};
    transaction.xid = {static_cast<uint32_t>(rows.integer(row, 4))};
    transaction.lcrs = static_cast<uint64_t>(rows.integer(row, 5));
    transaction.writes = decode_hashes_hex(rows.text(row, 6));
    transaction.reads = decode_hashes_hex(rows.text(row, 7));
    transaction.table_hashes = decode_hashes_hex(rows.text(row, 8));
    transaction.parent_hashes = decode_hashes_hex(rows.text(row, 9));
    transaction.referenced_hashes = decode_hashes_hex(rows.text(row, 10));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Marks those that were parked behind another and share nothing with an earlier one any more: whoever looks for what
// has to be done looks at the roots. One that somebody is at work on is left to him.
base::Result<void> mark_freed(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const auto entries, load_entries(connection, stream_id));
  ParkedSet earlier;
  std::vector<std::string> freed;
  for (const auto& entry : entries) {
    const TransactionHashes hashes = entry->transaction.hashes();
    if (entry->waits && !earlier.shares(hashes)) freed.push_back(std::to_string(entry->id));
    earlier.add(hashes);
  }
  if (freed.empty()) return {};
  THALWEG_TRY(connection.query(
      "WITH freed AS MATERIALIZED (SELECT id FROM thalweg.error_queue WHERE id = ANY ($3::bigint[]) FOR UPDATE SKIP "
      "LOCKED) UPDATE thalweg.error_queue q SET code = $1, message = $2, sqlstate = '' FROM freed WHERE q.id = "
      "freed.id",
      {base::name_of(ErrorCode::parked_freed), "no transaction of the error queue stands before it any more",
       pg::text_array(freed)}));
  return {};
}

// The names are those that a transaction was parked with, as pg::quote_table writes them. A table without ranges was
// never copied: the stream began at its position. A name may be that of a table which has another one now, and was
// copied under that: both are the same relation.
constexpr const char* kDiscardSuperseded = R"sql(
WITH named AS MATERIALIZED (
  SELECT t.*, '"' || replace(coalesce(to_jsonb(t) ->> 'destination_schema', schema_name), '"', '""') || '"."' ||
         replace(coalesce(to_jsonb(t) ->> 'destination_table', table_name), '"', '""') || '"' AS name,
         coalesce(to_jsonb(t) -> 'identity' ->> 'relation', '0') AS relation
  FROM thalweg.stream_table t WHERE stream_id = $1),
filled AS MATERIALIZED (
  SELECT * FROM named t WHERE NOT copy_again AND copied_to IS NOT NULL AND EXISTS (
    SELECT FROM thalweg.copy_range r
    WHERE (r.stream_id, r.schema_name, r.table_name) = (t.stream_id, t.schema_name, t.table_name))),
copied AS MATERIALIZED (
  SELECT DISTINCT ON (n.name) c.schema_name, c.table_name, c.copied_from, n.name
  FROM named n JOIN filled c ON c.name = n.name OR (n.relation <> '0' AND c.relation = n.relation)
  ORDER BY n.name, c.copied_from DESC),
superseded AS (
  SELECT q.id, (SELECT c.name FROM copied c WHERE c.name = ANY (q.tables) ORDER BY c.copied_from DESC, 1 LIMIT 1) AS name
  FROM thalweg.error_queue q
  WHERE q.stream_id = $1 AND q.tables <> '{}' AND NOT EXISTS (
    SELECT FROM unnest(q.tables) AS t(name)
    WHERE NOT EXISTS (SELECT FROM copied c WHERE c.name = t.name AND c.copied_from > q.commit_lsn))),
gone AS (DELETE FROM thalweg.error_queue q USING superseded s WHERE q.id = s.id RETURNING s.name),
counted AS MATERIALIZED (
  SELECT c.schema_name, c.table_name, min(c.name) AS name, c.copied_from, count(*) AS transactions
  FROM gone g JOIN copied c ON c.name = g.name GROUP BY 1, 2, 4),
noted AS (UPDATE thalweg.stream_table t SET errors_discarded = t.errors_discarded + c.transactions FROM counted c
          WHERE (t.stream_id, t.schema_name, t.table_name) = ($1, c.schema_name, c.table_name))
SELECT name, copied_from, transactions FROM counted ORDER BY 1
)sql";

// The transactions that one execution covers: one and those behind it, or all.
struct Chain {
  std::vector<ParkedEntry*> entries;  // in commit order
  bool stops = true;                  // at the first that fails; else those behind it are left out, and no others
};

// Transactions that failed, and later ones that share something with one of them.
struct Left {
  ParkedSet hashes;
  size_t count = 0;
  std::optional<base::Error> first;

  void add(const ParkedEntry& entry, std::optional<base::Error> why = {}) {
    hashes.add(entry.transaction.hashes());
    ++count;
    if (!first) first = std::move(why);
  }
};

// Progress of an execution.
struct Done {
  uint64_t executed = 0;
  uint64_t total = 0;                // of those that it has begun with by now
  ParkedSet solved;                  // of those that were executed
  std::unordered_set<int64_t> seen;  // in the queue, when it was read
  Left left;
};

base::Error left_error(Done done) {
  base::Error error = std::move(*done.left.first);
  error.message += fmt::format(
      "{} {} transactions were executed; {} stay in the error queue: what failed, and what waits "
      "behind it",
      error.message.ends_with('.') ? "" : ".", done.executed, done.left.count);
  return error;
}

base::Result<void> execute_entries(ParkedExecution& execution, DestinationSession& session, std::string_view stream_id,
                                   const Chain& chain, const ExecutionWatch& watch, Done& so_far) {
  const std::span<ParkedEntry* const> entries(chain.entries);
  so_far.total += entries.size();
  for (size_t at = 0; at < entries.size(); ++at) {
    ParkedEntry& entry = *entries[at];
    if (watch.progress) watch.progress(so_far.executed, so_far.total);
    if (watch.abandon != nullptr && *watch.abandon) {
      return base::fail(ErrorCode::engine_stopping,
                        fmt::format("ended after {} of {} transactions", so_far.executed, so_far.total));
    }
    if (at % kPageTransactions == 0) {
      THALWEG_TRY(execution.begin(stream_id));
      THALWEG_TRY(execution.read_ahead(entries.subspan(at, std::min(kPageTransactions, entries.size() - at))));
    }
    if (so_far.left.count > 0 && so_far.left.hashes.shares(entry.transaction.hashes())) {
      so_far.left.add(entry);
      continue;
    }
    auto done = execution.execute(entry);
    if (done) {
      ++so_far.executed;
      if (watch.left_out && entry.all_left_out()) watch.left_out(entry.id);
      so_far.solved.add(entry.transaction.hashes());
      continue;
    }
    if (watch.failed && !session.broken() && stays_alone(done.error().code)) watch.failed(entry.id, done.error());
    if (chain.stops || session.broken() || !stays_alone(done.error().code)) return done;
    so_far.left.add(entry, std::move(done).error());
  }
  return {};
}

base::Result<void> execute_chain(ParkedExecution& execution, DestinationSession& session, std::string_view stream_id,
                                 const Chain& chain, const ExecutionWatch& watch, Done& so_far) {
  auto executed = execute_entries(execution, session, stream_id, chain, watch, so_far);
  execution.end();  // the entries may go before it
  return executed;
}

// The transactions that were parked since the queue was read, behind something that has been executed by now, and
// behind nothing that stays.
Chain followers_of(const Entries& entries, bool stops, Done& done) {
  Chain chain{.entries = {}, .stops = stops};
  ParkedSet staying;
  for (const auto& entry : entries) {
    const TransactionHashes hashes = entry->transaction.hashes();
    const bool is_new = done.seen.insert(entry->id).second;
    const bool follows = is_new && entry->waits && done.solved.shares(hashes) && !staying.shares(hashes);
    (follows ? done.solved : staying).add(hashes);
    if (follows) chain.entries.push_back(entry.get());
  }
  return chain;
}

// While it lives, the stream's apply parks nothing more, or knows that what it parks now stays there for longer.
class ApplyHold {
 public:
  explicit ApplyHold(const ExecutionWatch& watch) : watch_(watch) {
    if (watch_.hold_apply) watch_.hold_apply();
  }
  ~ApplyHold() { end(); }
  ApplyHold(const ApplyHold&) = delete;
  ApplyHold& operator=(const ApplyHold&) = delete;
  void end() {
    if (std::exchange(held_, false) && watch_.go_on) watch_.go_on();
  }

 private:
  const ExecutionWatch& watch_;
  bool held_ = true;
};

// Apply parks what comes for the same rows behind a transaction until it learns that this one has been executed: all of
// that follows here.
base::Result<void> execute_followers(ParkedExecution& execution, DestinationSession& session,
                                     std::string_view stream_id, bool stops, const ExecutionWatch& watch, Done& done) {
  while (done.executed > 0) {
    ApplyHold hold(watch);
    session.leave_pipeline();
    THALWEG_ASSIGN(const Entries entries, load_entries(session.connection(), stream_id));
    const Chain chain = followers_of(entries, stops, done);
    if (chain.entries.empty()) break;
    if (chain.entries.size() > kHeldTransactionsMax) hold.end();
    THALWEG_TRY(execute_chain(execution, session, stream_id, chain, watch, done));
  }
  return {};
}

}  // namespace

base::Result<std::vector<ParkedTransaction>> list_parked(pg::Connection& connection, std::string_view stream_id,
                                                         const ParkedPart& part) {
  std::vector<ParkedTransaction> parked;
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return parked;
  std::string which = part.roots_only ? fmt::format(" AND {}", kIsRoot) : "";
  if (!part.cause.empty()) which += fmt::format(" AND {} = {}", kCauseId, connection.quote_literal(part.cause));
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query(fmt::format("{}{} AND id > $2::bigint ORDER BY id LIMIT $3::bigint", kSelectParked, which),
                       {stream_id, std::to_string(part.after), std::to_string(part.limit)}));
  for (size_t row = 0; row < rows.size(); ++row) parked.push_back(read_entry(rows, row));
  return parked;
}

base::Result<ParkedTransaction> find_parked(pg::Connection& connection, std::string_view stream_id, int64_t id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown_parked(id);
  THALWEG_ASSIGN(const auto found, find_parked(connection, stream_id, std::span(&id, 1)));
  if (found.empty()) return unknown_parked(id);
  return found.front();
}

base::Result<std::vector<ParkedTransaction>> find_parked(pg::Connection& connection, std::string_view stream_id,
                                                         std::span<const int64_t> ids) {
  std::vector<std::string> texts;
  for (const int64_t id : ids) texts.push_back(std::to_string(id));
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(kSelectParked + " AND id = ANY ($2::bigint[])", {stream_id, pg::text_array(texts)}));
  std::vector<ParkedTransaction> parked;
  for (size_t row = 0; row < rows.size(); ++row) parked.push_back(read_entry(rows, row));
  return parked;
}

base::Result<ParkedCounts> count_parked(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return ParkedCounts{};
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT count(*), count(*) FILTER (WHERE {}) FROM thalweg.error_queue "
                                              "WHERE stream_id = $1",
                                              kIsRoot),
                                  {stream_id}));
  return ParkedCounts{.total = static_cast<uint64_t>(rows.integer(0, 0)),
                      .roots = static_cast<uint64_t>(rows.integer(0, 1))};
}

base::Result<std::vector<ParkedCause>> parked_causes(pg::Connection& connection, std::string_view stream_id) {
  std::vector<ParkedCause> causes;
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return causes;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT {} AS cause, code, sqlstate, {} AS of_table, {} AS object, "
                                              "count(*), {} {} WHERE stream_id = $1 "
                                              "GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC, 1 LIMIT {}",
                                              kCauseId, kTableOfCause, kObjectOfCause, utc_text("min(parked_at)"),
                                              kFromParked, telemetry::kParkedCausesMax),
                                  {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    causes.push_back({.id = std::string(rows.text(row, 0)),
                      .code = std::string(rows.text(row, 1)),
                      .sqlstate = std::string(rows.text(row, 2)),
                      .table = std::string(rows.text(row, 3)),
                      .object = std::string(rows.text(row, 4)),
                      .transactions = static_cast<uint64_t>(rows.integer(row, 5)),
                      .oldest = std::string(rows.text(row, 6))});
  }
  return causes;
}

base::Result<void> remove_parked(pg::Connection& connection, std::string_view stream_id, int64_t id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown_parked(id);
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  return pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_ASSIGN(const pg::Rows rows,
                   connection.query("DELETE FROM thalweg.error_queue WHERE stream_id = $1 AND id = $2::bigint",
                                    {stream_id, std::to_string(id)}));
    if (rows.affected() != 1) return unknown_parked(id);
    return mark_freed(connection, stream_id);
  });
}

base::Result<void> edit_parked(pg::Connection& connection, std::string_view stream_id, int64_t id, uint64_t number,
                               const std::optional<telemetry::ParkedEdit>& edit, std::string_view version) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown_parked(id);
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  THALWEG_TRY(hold_error_queue(connection, stream_id));
  THALWEG_ASSIGN(const ParkedTransaction found, find_parked(connection, stream_id, id));
  if (!version.empty() && version != found.edits_version) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("the edits of transaction {} are not of version {} any more", id, version));
  }
  const std::string id_text = std::to_string(id);
  const std::string number_text = std::to_string(number);
  if (!edit) {
    THALWEG_ASSIGN(const pg::Rows rows,
                   connection.query("UPDATE thalweg.error_queue SET edits = edits - $3::text "
                                    "WHERE stream_id = $1 AND id = $2::bigint AND edits ? $3::text",
                                    {stream_id, id_text, number_text}));
    if (rows.affected() == 1) return {};
    return base::fail(ErrorCode::unknown_error_transaction,
                      fmt::format("change {} of transaction {} is as it came", number, id));
  }
  THALWEG_TRY(check_edit(connection, id, number, *edit));
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("UPDATE thalweg.error_queue SET edits = edits || jsonb_build_object($3::text, "
                                  "$4::jsonb) WHERE stream_id = $1 AND id = $2::bigint",
                                  {stream_id, id_text, number_text, edit_json(*edit)}));
  if (rows.affected() != 1) return unknown_parked(id);
  return {};
}

namespace {

// The transactions with these ids, and those that wait behind them and behind no other.
Chain chain_of(const Entries& entries, const std::unordered_set<int64_t>& ids, bool stops) {
  Chain chain{.entries = {}, .stops = stops};
  ParkedSet in_chain;
  // An earlier one that touched the same rows has to go first, or it would overwrite this one later.
  ParkedSet staying;
  for (const auto& entry : entries) {
    const TransactionHashes hashes = entry->transaction.hashes();
    const bool follows = (ids.contains(entry->id) || in_chain.shares(hashes)) && !staying.shares(hashes);
    (follows ? in_chain : staying).add(hashes);
    if (follows) chain.entries.push_back(entry.get());
  }
  return chain;
}

base::Result<Chain> chain_of_one(const Entries& entries, int64_t id) {
  if (std::ranges::find(entries, id, [](const auto& entry) { return entry->id; }) == entries.end()) {
    return unknown_parked(id);
  }
  Chain chain = chain_of(entries, {id}, true);
  if (!chain.entries.empty()) return chain;
  return base::fail(ErrorCode::parked_behind,
                    fmt::format("transaction {} waits behind an earlier one of the error queue", id));
}

base::Result<Chain> chain_of_cause(pg::Connection& connection, std::string_view stream_id, const Entries& entries,
                                   const std::string& cause) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT id {} WHERE stream_id = $1 AND {} = $2", kFromParked, kCauseId),
                                  {stream_id, cause}));
  if (rows.size() == 0) {
    return base::fail(ErrorCode::unknown_error_transaction,
                      "no transaction of the error queue has this cause any more");
  }
  std::unordered_set<int64_t> ids;
  for (size_t row = 0; row < rows.size(); ++row) ids.insert(rows.integer(row, 0));
  Chain chain = chain_of(entries, ids, false);
  if (!chain.entries.empty()) return chain;
  return base::fail(ErrorCode::parked_behind,
                    "all transactions with this cause wait behind earlier ones of the error queue");
}

Chain chain_of_all(const Entries& entries) {
  Chain chain{.entries = {}, .stops = false};
  for (const auto& entry : entries) chain.entries.push_back(entry.get());
  return chain;
}

base::Result<Chain> chosen(pg::Connection& connection, std::string_view stream_id, const Entries& entries,
                           const ParkedChoice& choice) {
  if (choice.id) return chain_of_one(entries, *choice.id);
  if (!choice.cause.empty()) return chain_of_cause(connection, stream_id, entries, choice.cause);
  return chain_of_all(entries);
}

// Whether the session may act as the role.
base::Result<void> check_role(pg::Connection& connection, const std::string& role) {
  if (role.empty()) return {};
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN "
                                  "pg_has_role(oid, 'SET') ELSE pg_has_role(oid, 'MEMBER') END, quote_ident(rolname), "
                                  "quote_ident(current_user) FROM pg_roles WHERE rolname = $1",
                                  {role}));
  if (rows.size() == 0) {
    return base::fail(ErrorCode::invalid_request, fmt::format("the destination has no role {}", role));
  }
  if (rows.boolean(0, 0)) return {};
  return base::fail(ErrorCode::insufficient_privilege,
                    fmt::format("{0} may not act as {1}: GRANT {1} TO {0}", rows.text(0, 2), rows.text(0, 1)),
                    base::ErrorSide::destination);
}

// Whether the error would be a transaction's own failure, were it executed.
bool is_result_of_dry_run(ErrorCode code) {
  return is_about_data(code) || code == ErrorCode::missing_table || code == ErrorCode::insufficient_privilege;
}

}  // namespace

base::Result<void> hold_error_queue(pg::Connection& connection, std::string_view stream_id) {
  const auto deadline = std::chrono::steady_clock::now() + kHoldPatience;
  do {
    THALWEG_ASSIGN(const pg::Rows rows,
                   connection.query("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('thalweg error "
                                    "queue ' || $1, 0))",
                                    {stream_id}));
    if (rows.boolean(0, 0)) return {};
    std::this_thread::sleep_for(kHoldPause);
  } while (std::chrono::steady_clock::now() < deadline);
  return base::fail(
      ErrorCode::database_busy,
      "Transactions of the stream's error queue are being executed at this destination, or a table is just "
      "being taken for another copy");
}

base::Result<std::vector<Superseded>> discard_superseded(pg::Connection& connection, std::string_view stream_id) {
  std::vector<Superseded> gone;
  THALWEG_ASSIGN(const bool exist, pg::trusted_bookkeeping(connection, {"error_queue", "stream_table"}));
  if (!exist) return gone;
  THALWEG_TRY(pg::in_transaction(connection, [&]() -> base::Result<void> {
    THALWEG_ASSIGN(const pg::Rows rows, connection.query(kDiscardSuperseded, {stream_id}));
    for (size_t row = 0; row < rows.size(); ++row) {
      gone.push_back({.table = std::string(rows.text(row, 0)),
                      .copied_at = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{}),
                      .transactions = static_cast<uint64_t>(rows.integer(row, 2))});
    }
    return gone.empty() ? base::Result<void>{} : mark_freed(connection, stream_id);
  }));
  return gone;
}

base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id, const ParkedChoice& choice,
                                  const ExecutionWatch& watch, std::span<const metadata::StatementHandler> handlers) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return choice.id ? unknown_parked(*choice.id) : base::Result<void>{};
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  THALWEG_TRY(check_role(connection, choice.role));
  THALWEG_TRY(hold_error_queue(connection, stream_id));
  THALWEG_ASSIGN(const Entries entries, load_entries(connection, stream_id));
  THALWEG_ASSIGN(const Chain chain, chosen(connection, stream_id, entries, choice));
  THALWEG_ASSIGN(auto session, DestinationSession::adopt(std::move(connection)));
  Done done;
  for (const auto& entry : entries) done.seen.insert(entry->id);
  ParkedExecution execution(session, choice.role, handlers);
  auto executed = execute_chain(execution, session, stream_id, chain, watch, done);
  if (executed) executed = execute_followers(execution, session, stream_id, chain.stops, watch, done);
  if (executed && watch.progress) watch.progress(done.executed, done.total);
  if (executed && done.left.count > 0) executed = std::unexpected(left_error(std::move(done)));
  if (session.broken()) return executed;
  // Where one of the chain did not go through, it need not hold back all that are left.
  session.leave_pipeline();
  if (auto marked = mark_freed(session.connection(), stream_id); !marked) {
    base::log_error("error_queue_not_marked", marked.error(), {{"stream", stream_id}});
  }
  return executed;
}

base::Result<DryRun> dry_run_parked(pg::Connection connection, std::string_view stream_id, int64_t id,
                                    const std::string& role, std::span<const metadata::StatementHandler> handlers) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown_parked(id);
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  THALWEG_TRY(check_role(connection, role));
  THALWEG_TRY(hold_error_queue(connection, stream_id));
  THALWEG_ASSIGN(const Entries entries, load_entries(connection, stream_id));
  THALWEG_ASSIGN(const Chain chain, chain_of_one(entries, id));
  THALWEG_ASSIGN(auto session, DestinationSession::adopt(std::move(connection)));
  ParkedExecution execution(session, role, handlers);
  THALWEG_TRY(execution.begin(stream_id));
  ParkedEntry& entry = *chain.entries.front();
  DryRun outcome{.error = {}, .changes = entry.transaction.lcrs};
  for (const auto& [number, edit] : entry.edits) ++(edit.left_out ? outcome.left_out : outcome.edited);
  auto tried = execution.dry_run(entry);
  outcome.settled = execution.settled();
  if (tried) return outcome;
  outcome.failed_change = execution.failed_change();
  if (session.broken() || !is_result_of_dry_run(tried.error().code)) return std::unexpected(std::move(tried).error());
  outcome.error = std::move(tried).error();
  return outcome;
}

}  // namespace thalweg::apply
