#include "apply/error_queue.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/group_executor.h"
#include "apply/applier/parking.h"
#include "apply/data_error.h"
#include "apply/frame_blocks.h"
#include "apply/parked_frames.h"
#include "apply/progress.h"
#include "base/log.h"
#include "pg/text_array.h"
#include "pg/transaction.h"

namespace thalweg::apply {

using base::ErrorCode;
using telemetry::ParkedPart;
using telemetry::ParkedTransaction;

namespace {

base::Result<bool> queue_exists(pg::Connection& connection) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT pg_catalog.to_regclass('thalweg.error_queue') IS NOT NULL"));
  return rows.boolean(0, 0);
}

const std::string kSelectParked =
    "SELECT id, commit_lsn, xid, lcrs, tables, code, message, sqlstate, "
    "to_char(parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
    "FROM thalweg.error_queue WHERE stream_id = $1";

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
          .parked_at = std::string(rows.text(row, 8))};
}

struct Entry {
  int64_t id;
  bool waits;  // says that it waits behind an earlier one
  Transaction transaction;
};

// Oldest first. Their frames are not loaded.
base::Result<std::vector<std::unique_ptr<Entry>>> load_entries(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT id, commit_lsn, end_lsn, commit_micros, xid, lcrs, hashes, read_hashes, "
                                  "table_hashes, parent_hashes, referenced_hashes, code "
                                  "FROM thalweg.error_queue WHERE stream_id = $1 ORDER BY commit_lsn",
                                  {stream_id}));
  std::vector<std::unique_ptr<Entry>> entries;
  for (size_t row = 0; row < rows.size(); ++row) {
    auto entry = std::make_unique<Entry>();
    entry->id = rows.integer(row, 0);
    entry->waits = rows.text(row, 11) == base::name_of(ErrorCode::parked_behind);
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

// The tables of one parked transaction, from its own descriptions. Owner: one thread.
class LoadedTables final : public TableFinder {
 public:
  explicit LoadedTables(pg::Connection& connection) : connection_(connection) {}

  // While the connection is in no pipeline.
  base::Result<void> load(const std::shared_ptr<const metadata::SourceTable>& source) {
    THALWEG_ASSIGN(auto table, loader_.load(connection_, *source));
    tables_.push_back(std::move(table));
    return {};
  }
  base::Result<const metadata::TableMetadata*> find(const metadata::SourceTable& source) override {
    const auto found = std::ranges::find(tables_, source.id, [](const auto& table) { return table->source_id; });
    if (found != tables_.end()) return found->get();
    return base::fail(ErrorCode::corrupt_frame, "a row came before its table's description");
  }
  void release() override { tables_.clear(); }

 private:
  pg::Connection& connection_;
  std::atomic<uint64_t> generations_{0};
  metadata::TableLoader loader_{generations_};
  std::vector<std::unique_ptr<const metadata::TableMetadata>> tables_;
};

// Runs parked transactions over one session. Owner: one thread.
class Execution {
 public:
  explicit Execution(DestinationSession& session)
      : session_(session),
        tables_(session.connection()),
        executor_(session, tables_, sets_, data_layer_calls_, merged_updates_),
        pool_(&bell_) {}

  base::Result<void> execute(Entry& entry) {
    auto executed = load_and_execute(entry);
    entry.transaction.frames.clear();  // its memory is our pool's
    if (!executed && is_about_data(executed.error().code) && !session_.broken()) {
      THALWEG_TRY(note(entry.id, executed.error()));
    }
    return executed;
  }

 private:
  base::Result<void> load_and_execute(Entry& entry) {
    THALWEG_TRY(load_frames(entry));
    THALWEG_TRY(session_.run("BEGIN"));
    auto refusal = executor_.execute_rows(entry.transaction);
    if (refusal && !*refusal) {
      refusal = forget(entry.id);
      if (refusal && !*refusal) {
        THALWEG_TRY(session_.run("COMMIT"));
        refusal = session_.sync();
      }
    }
    executor_.reset();
    if (refusal && !*refusal) return {};
    base::Error error = refusal ? final_error(**refusal, entry.transaction) : refusal.error();
    if (!session_.broken()) {
      if (!refusal) THALWEG_TRY(session_.sync());  // what was sent before
      THALWEG_TRY(session_.run("ROLLBACK"));
      THALWEG_TRY(session_.sync());
    }
    return std::unexpected(std::move(error));
  }

  // The queue tells why it waits now: it may have been parked behind one that is gone.
  base::Result<void> note(int64_t id, const base::Error& why) {
    static constexpr std::array kTypes{base::TypeId{25}, base::TypeId{25}, base::TypeId{25}, base::TypeId{20}};
    const std::string id_text = std::to_string(id);
    const std::array parameters{pg::text_parameter(base::name_of(why.code)), pg::text_parameter(why.message),
                                pg::text_parameter(why.sqlstate), pg::text_parameter(id_text)};
    THALWEG_TRY(
        session_.run(session_.prepared(
                         "UPDATE thalweg.error_queue SET code = $1, message = $2, sqlstate = $3 WHERE id = $4", kTypes),
                     parameters, {.rows = 0, .any = true}));
    THALWEG_TRY(session_.sync());
    return {};
  }

  base::Result<Refusal> forget(int64_t id) {
    static constexpr std::array kTypes{base::TypeId{20}};
    const std::string id_text = std::to_string(id);
    const std::array parameters{pg::text_parameter(id_text)};
    // The session's replica role keeps the foreign key's cascade from firing.
    THALWEG_TRY(session_.run(session_.prepared("DELETE FROM thalweg.error_queue_chunk WHERE error_id = $1", kTypes),
                             parameters, {.rows = 0, .any = true}));
    THALWEG_TRY(session_.run(session_.prepared("DELETE FROM thalweg.error_queue WHERE id = $1", kTypes), parameters,
                             {.rows = 1}));
    return session_.sync();
  }

  base::Result<void> load_frames(Entry& entry) {
    session_.leave_pipeline();
    Block* fill = nullptr;
    tables_.release();
    auto loaded =
        visit_parked_frames(session_.connection(), entry.id, [&](const lcr::FrameView& frame) -> base::Result<bool> {
          THALWEG_TRY(take_frame(frame, entry.transaction, fill));
          return true;
        });
    if (fill != nullptr) pool_.drop(fill);
    return loaded;
  }

  base::Result<void> take_frame(const lcr::FrameView& frame, Transaction& transaction, Block*& fill) {
    if (frame.kind() != lcr::FrameKind::table) {
      transaction.frames.append(pool_, fill, frame.bytes());
      return {};
    }
    THALWEG_ASSIGN(const auto source, described_table(frame, ++descriptions_));
    THALWEG_TRY(tables_.load(source));
    transaction.tables.add(source);
    return {};
  }

  DestinationSession& session_;
  telemetry::Counter sets_, data_layer_calls_, merged_updates_;
  uint64_t descriptions_ = 0;
  LoadedTables tables_;
  GroupExecutor executor_;
  base::Doorbell bell_;
  BlockPool pool_;
};

base::Result<void> execute_chain(DestinationSession& session, const std::vector<Entry*>& chain,
                                 const ExecutionWatch& watch) {
  Execution execution(session);
  for (size_t executed = 0; executed < chain.size(); ++executed) {
    if (watch.progress) watch.progress(executed, chain.size());
    if (watch.abandon != nullptr && *watch.abandon) {
      return base::fail(ErrorCode::engine_stopping,
                        fmt::format("ended after {} of {} transactions", executed, chain.size()));
    }
    THALWEG_TRY(execution.execute(*chain[executed]));
  }
  if (watch.progress) watch.progress(chain.size(), chain.size());
  return {};
}

}  // namespace

base::Result<std::vector<ParkedTransaction>> list_parked(pg::Connection& connection, std::string_view stream_id,
                                                         const ParkedPart& part) {
  std::vector<ParkedTransaction> parked;
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return parked;
  const std::string which = part.roots_only ? fmt::format(" AND {}", kIsRoot) : "";
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
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(kSelectParked + " AND id = $2::bigint", {stream_id, std::to_string(id)}));
  if (rows.size() == 0) return unknown_parked(id);
  return read_entry(rows, 0);
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

base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id, int64_t id,
                                  const ExecutionWatch& watch) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown_parked(id);
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  THALWEG_ASSIGN(const auto entries, load_entries(connection, stream_id));
  const auto first = std::ranges::find(entries, id, [](const auto& entry) { return entry->id; });
  if (first == entries.end()) return unknown_parked(id);
  // An earlier one that touched the same rows has to go first, or it would overwrite this one later.
  ParkedSet earlier;
  for (auto at = entries.begin(); at != first; ++at) earlier.add((*at)->transaction.hashes());
  if (earlier.shares((*first)->transaction.hashes())) {
    return base::fail(ErrorCode::parked_behind,
                      fmt::format("transaction {} waits behind an earlier one of the error queue", id));
  }
  std::vector<Entry*> chain;
  ParkedSet in_chain;
  for (auto at = first; at != entries.end(); ++at) {
    Entry& entry = **at;
    const bool follows =
        at == first || (in_chain.shares(entry.transaction.hashes()) && !earlier.shares(entry.transaction.hashes()));
    (follows ? in_chain : earlier).add(entry.transaction.hashes());
    if (follows) chain.push_back(&entry);
  }
  THALWEG_ASSIGN(auto session, DestinationSession::adopt(std::move(connection)));
  auto executed = execute_chain(session, chain, watch);
  if (session.broken()) return executed;
  // Where one of the chain did not go through, it need not hold back all that are left.
  session.leave_pipeline();
  if (auto marked = mark_freed(session.connection(), stream_id); !marked) {
    base::log_error("error_queue_not_marked", marked.error(), {{"stream", stream_id}});
  }
  return executed;
}

}  // namespace thalweg::apply
