#include "apply/error_queue.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/group_executor.h"
#include "apply/applier/parking.h"
#include "apply/frame_blocks.h"
#include "apply/progress.h"
#include "apply/ranges.h"

namespace thalweg::apply {

using base::ErrorCode;

namespace {

base::Result<bool> queue_exists(pg::Connection& connection) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT pg_catalog.to_regclass('thalweg.error_queue') IS NOT NULL"));
  return rows.boolean(0, 0);
}

std::unexpected<base::Error> unknown(int64_t id) {
  return base::fail(ErrorCode::unknown_error_transaction, fmt::format("the error queue has no transaction {}", id));
}

// "{a,\"b c\"}" of names that quote_table made.
std::vector<std::string> parse_array(std::string_view text) {
  std::vector<std::string> items;
  std::string item;
  bool quoted = false;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '\\') {
      item += text[++i];
    } else if (c == ',' && !quoted) {
      items.push_back(std::exchange(item, {}));
    } else {
      item += c;
    }
  }
  if (!item.empty()) items.push_back(std::move(item));
  return items;
}

struct Entry {
  int64_t id;
  Transaction transaction;
};

// Oldest first. Their frames are not loaded.
base::Result<std::vector<std::unique_ptr<Entry>>> load_entries(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT id, commit_lsn, end_lsn, commit_micros, xid, lcrs, hashes, read_hashes, "
                                  "table_hashes, parent_hashes, referenced_hashes "
                                  "FROM thalweg.error_queue WHERE stream_id = $1 ORDER BY commit_lsn",
                                  {stream_id}));
  std::vector<std::unique_ptr<Entry>> entries;
  for (size_t row = 0; row < rows.size(); ++row) {
    auto entry = std::make_unique<Entry>();
    entry->id = rows.integer(row, 0);
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
    if (!refusal) return std::unexpected(refusal.error());
    if (!*refusal) return {};
    base::Error error = final_error(**refusal, entry.transaction);
    if (!session_.broken()) {
      THALWEG_TRY(session_.run("ROLLBACK"));
      THALWEG_TRY(session_.sync());
    }
    return std::unexpected(std::move(error));
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
    const std::string id = std::to_string(entry.id);
    Block* fill = nullptr;
    tables_.release();
    base::Result<void> loaded;
    for (int chunk = 0;; ++chunk) {
      auto rows = session_.connection().query(
          "SELECT frames FROM thalweg.error_queue_chunk WHERE error_id = $1::bigint AND chunk = $2::integer",
          {id, std::to_string(chunk)});
      if (!rows) loaded = std::unexpected(rows.error());
      if (!rows || rows->size() == 0) break;
      loaded = take_frames(bytes_from_hex(rows->text(0, 0)), entry.transaction, fill);
      if (!loaded) break;
    }
    if (fill != nullptr) pool_.drop(fill);
    return loaded;
  }

  base::Result<void> take_frames(std::span<const std::byte> bytes, Transaction& transaction, Block*& fill) {
    while (!bytes.empty()) {
      THALWEG_ASSIGN(const auto frame, lcr::FrameView::decode(bytes));
      bytes = bytes.subspan(frame.header().length);
      if (frame.kind() != lcr::FrameKind::table) {
        transaction.frames.append(pool_, fill, frame.bytes());
        continue;
      }
      auto source = std::make_shared<metadata::SourceTable>();
      THALWEG_ASSIGN(source->description, frame.table());
      source->id = ++descriptions_;
      source->quoted_name = pg::quote_table(source->description.schema_name, source->description.table_name);
      THALWEG_TRY(tables_.load(source));
      transaction.tables.add(source);
    }
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

}  // namespace

base::Result<std::vector<ParkedTransaction>> list_parked(pg::Connection& connection, std::string_view stream_id) {
  std::vector<ParkedTransaction> parked;
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return parked;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT id, commit_lsn, xid, lcrs, tables, code, message, sqlstate, "
                                  "to_char(parked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
                                  "FROM thalweg.error_queue WHERE stream_id = $1 ORDER BY commit_lsn",
                                  {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    parked.push_back({.id = rows.integer(row, 0),
                      .commit_lsn = base::parse_lsn(rows.text(row, 1)).value_or(base::Lsn{}),
                      .xid = {static_cast<uint32_t>(rows.integer(row, 2))},
                      .lcrs = static_cast<uint64_t>(rows.integer(row, 3)),
                      .tables = parse_array(rows.text(row, 4)),
                      .code = std::string(rows.text(row, 5)),
                      .message = std::string(rows.text(row, 6)),
                      .sqlstate = std::string(rows.text(row, 7)),
                      .parked_at = std::string(rows.text(row, 8))});
  }
  return parked;
}

base::Result<uint64_t> count_parked(pg::Connection& connection, std::string_view stream_id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return 0;
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT count(*) FROM thalweg.error_queue WHERE stream_id = $1", {stream_id}));
  return static_cast<uint64_t>(rows.integer(0, 0));
}

base::Result<void> remove_parked(pg::Connection& connection, std::string_view stream_id, int64_t id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown(id);
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("DELETE FROM thalweg.error_queue WHERE stream_id = $1 AND id = $2::bigint",
                                  {stream_id, std::to_string(id)}));
  if (rows.affected() != 1) return unknown(id);
  return {};
}

base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id, int64_t id) {
  THALWEG_ASSIGN(const bool exists, queue_exists(connection));
  if (!exists) return unknown(id);
  THALWEG_TRY(ensure_schema(connection));  // of an engine that knew fewer columns
  THALWEG_ASSIGN(const auto entries, load_entries(connection, stream_id));
  const auto first = std::ranges::find(entries, id, [](const auto& entry) { return entry->id; });
  if (first == entries.end()) return unknown(id);
  // An earlier one that touched the same rows has to go first, or it would overwrite this one later.
  ParkedSet earlier;
  for (auto at = entries.begin(); at != first; ++at) earlier.add((*at)->transaction.hashes());
  if (earlier.shares((*first)->transaction.hashes())) {
    return base::fail(ErrorCode::parked_behind,
                      fmt::format("transaction {} waits behind an earlier one of the error queue", id));
  }
  THALWEG_ASSIGN(auto session, DestinationSession::adopt(std::move(connection)));
  Execution execution(session);
  ParkedSet executed;
  for (auto at = first; at != entries.end(); ++at) {
    Entry& entry = **at;
    const bool follows =
        at == first || (executed.shares(entry.transaction.hashes()) && !earlier.shares(entry.transaction.hashes()));
    (follows ? executed : earlier).add(entry.transaction.hashes());
    if (follows) THALWEG_TRY(execution.execute(entry));
  }
  return {};
}

}  // namespace thalweg::apply
