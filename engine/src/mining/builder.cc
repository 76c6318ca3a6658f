#include "mining/builder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "mining/row_reader.h"
#include "pg/connection.h"
#include "wal/file_records.h"
#include "wal/little_endian.h"

namespace thalweg::mining {

namespace {

bool same_table(const lcr::TableDescription& a, const lcr::TableDescription& b) {
  return a.schema_name == b.schema_name && a.table_name == b.table_name && a.replica_identity == b.replica_identity &&
         std::ranges::equal(a.columns, b.columns, [](const auto& one, const auto& other) {
           return one.name == other.name && one.type == other.type && one.type_modifier == other.type_modifier &&
                  one.is_key == other.is_key;
         });
}

base::Error placed(base::Error error, const wal::WalRecord& record) {
  error.lsn = record.begin;
  error.xid = record.xid;
  return error;
}

bool is_heap(const wal::WalRecord& record) { return record.rmgr == wal::Rmgr::heap || record.rmgr == wal::Rmgr::heap2; }

}  // namespace

base::Result<void> Builder::apply(const wal::WalRecord& record, const wal::RecordParts& parts,
                                  const wal::WalFormat& format) {
  THALWEG_TRY(dictionary_.apply(record, parts, format));
  if (!was_ready_ && dictionary_.is_ready()) {
    was_ready_ = true;
    THALWEG_TRY(read_kept(format));
  }
  if (is_heap(record) && was_ready_) return apply_heap(record, parts);
  if (is_heap(record)) {
    if (!record.xid) return {};
    transactions_[dictionary_.top_of(record.xid)].kept.emplace_back(
        record, std::string{reinterpret_cast<const char*>(record.body.data()), record.body.size()});
    return {};
  }
  if (wal::ends_all_transactions(record)) abort_all({});
  THALWEG_ASSIGN(const auto oldest, wal::parse_oldest_running(record, parts));
  if (oldest) abort_all(*oldest);
  if (record.rmgr != wal::Rmgr::transaction) return {};
  THALWEG_ASSIGN(const wal::TransactionRecord parsed, wal::parse_transaction(record, parts, format));
  if (parsed.operation == wal::TransactionOperation::commit) commit(record, parsed);
  if (parsed.operation == wal::TransactionOperation::abort) abort(parsed);
  if (parsed.operation == wal::TransactionOperation::prepare) prepared_.insert(record.xid.value);
  return {};
}

// No other transaction can have changed the tables of one that is open, and what it changed itself it sees now. Rows
// from before such a change of its own cannot be told from those behind it.
base::Result<void> Builder::read_kept(const wal::WalFormat& format) {
  for (auto& [top_level, transaction] : transactions_) {
    if (dictionary_.has_own_changes(top_level) && !transaction.kept.empty()) {
      return base::fail(
          base::ErrorCode::database_busy,
          fmt::format("Transaction {} changed the schema while the capture started. Start it again.", top_level.value),
          base::ErrorSide::source);
    }
    wal::RecordParts parts;
    auto kept = std::exchange(transaction.kept, {});
    for (auto& [record, body] : kept) {
      record.body = std::as_bytes(std::span{body});
      THALWEG_TRY(parts.parse(record, format));
      THALWEG_TRY(apply_heap(record, parts));
    }
  }
  return {};
}

base::Result<void> Builder::apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts) {
  if (!record.xid) return {};
  THALWEG_ASSIGN(const wal::HeapChange made, heap_records_.parse(record, parts));
  const base::Xid top_level = dictionary_.top_of(record.xid);
  const wal::BlockReference* const page = made.new_page != nullptr ? made.new_page : made.old_page;
  std::shared_ptr<const MinedTable> table;
  switch (made.operation) {
    case wal::HeapOperation::none:
    case wal::HeapOperation::in_place:
      return {};
    case wal::HeapOperation::truncate:
      return truncate(record, made, top_level);
    case wal::HeapOperation::confirm:
      if (const auto found = transactions_.find(top_level); found != transactions_.end() && found->second.speculative) {
        found->second.rows.push_back(std::move(*found->second.speculative));
        found->second.speculative.reset();
      }
      return {};
    case wal::HeapOperation::insert:
    case wal::HeapOperation::multi_insert:
    case wal::HeapOperation::update:
    case wal::HeapOperation::remove: {
      const auto oid = dictionary_.relation_of(page->file, top_level);
      if (!oid) return {};
      auto found = table_of(*oid, top_level);
      if (!found) return std::unexpected(placed(std::move(found).error(), record));
      table = std::move(*found);
    }
  }
  if (!table || !(table->is_wanted || table->is_toast)) return {};
  Transaction& transaction = transactions_[top_level];
  const bool inserts =
      made.operation == wal::HeapOperation::insert || made.operation == wal::HeapOperation::multi_insert;
  const auto done = inserts ? insert(record, made, table, transaction) : change(record, made, table, transaction);
  if (!done) return std::unexpected(placed(done.error(), record));
  return {};
}

base::Result<void> Builder::insert(const wal::WalRecord& record, const wal::HeapChange& change,
                                   const std::shared_ptr<const MinedTable>& table, Transaction& transaction) {
  if (!change.has_new_rows) return {};
  for (const wal::NewTuple& added : change.tuples) {
    if (table->is_toast) {
      if (!transaction.chunks.add(added.tuple)) {
        return base::fail(base::ErrorCode::protocol_violation, "A row of a TOAST table is no chunk.");
      }
      continue;
    }
    Row row{.xid = record.xid, .kind = lcr::FrameKind::insert, .lsn = record.begin, .tables = {table}};
    THALWEG_TRY(read_row(*table, added.tuple, transaction.chunks, row.new_tuple));
    if (change.is_speculative) {
      transaction.speculative = std::move(row);
    } else {
      transaction.rows.push_back(std::move(row));
    }
  }
  const bool keeps_chunks = change.operation == wal::HeapOperation::multi_insert && !change.is_last;
  if (!table->is_toast && !keeps_chunks) transaction.chunks.clear();
  return {};
}

base::Result<void> Builder::change(const wal::WalRecord& record, const wal::HeapChange& change,
                                   const std::shared_ptr<const MinedTable>& table, Transaction& transaction) {
  if (table->is_toast) return {};
  const bool removes = change.operation == wal::HeapOperation::remove;
  if (removes && change.is_speculative) {
    transaction.speculative.reset();
    transaction.chunks.clear();
    return {};
  }
  if (!removes && !change.has_new_rows) return {};
  Row row{.xid = record.xid,
          .kind = removes ? lcr::FrameKind::remove : lcr::FrameKind::update,
          .lsn = record.begin,
          .tables = {table}};
  if (change.old_tuple) {
    row.flags = table->is_identity_full ? lcr::kOldRow : lcr::kOldKey;
    THALWEG_TRY(read_row(*table, *change.old_tuple, transaction.chunks, row.old_tuple));
  } else if (removes) {
    base::Error error = base::fail(base::ErrorCode::replica_identity_missing,
                                   "A row was deleted, and the source's WAL does not say which one.")
                            .error();
    error.table = pg::quote_table(table->description.schema_name, table->description.table_name);
    return std::unexpected(std::move(error));
  }
  if (!removes) THALWEG_TRY(read_row(*table, change.tuples.front().tuple, transaction.chunks, row.new_tuple));
  transaction.rows.push_back(std::move(row));
  transaction.chunks.clear();
  return {};
}

base::Result<void> Builder::truncate(const wal::WalRecord& record, const wal::HeapChange& change, base::Xid top_level) {
  if (change.database != dictionary_.database()) return {};
  Row row{.xid = record.xid, .kind = lcr::FrameKind::truncate, .lsn = record.begin};
  for (size_t at = 0; at < change.relations.size(); at += sizeof(uint32_t)) {
    auto table = table_of(wal::load<uint32_t>(change.relations, at), top_level);
    if (!table) return std::unexpected(placed(std::move(table).error(), record));
    if (*table && (*table)->is_wanted) row.tables.push_back(std::move(*table));
  }
  if (row.tables.empty()) return {};
  row.flags = static_cast<uint16_t>((change.truncates_cascading ? lcr::kCascade : 0) |
                                    (change.truncates_sequences ? lcr::kRestartIdentity : 0));
  transactions_[top_level].rows.push_back(std::move(row));
  return {};
}

base::Result<std::shared_ptr<const MinedTable>> Builder::table_of(uint32_t oid, base::Xid top_level) {
  if (dictionary_.has_own_changes(top_level)) return read_table(dictionary_, oid, top_level, options_.is_wanted);
  if (tables_as_of_ != dictionary_.changes()) tables_.clear();
  tables_as_of_ = dictionary_.changes();
  if (const auto found = tables_.find(oid); found != tables_.end()) return found->second;
  THALWEG_ASSIGN(auto table, read_table(dictionary_, oid, {}, options_.is_wanted));
  return tables_.emplace(oid, std::move(table)).first->second;
}

void Builder::commit(const wal::WalRecord& record, const wal::TransactionRecord& end) {
  prepared_.erase(end.xid.value);
  const auto found = transactions_.extract(end.xid);
  if (found.empty() || record.begin < options_.from) return;
  std::vector<Row>& rows = found.mapped().rows;
  // A subtransaction that is not named did not commit.
  std::erase_if(rows, [&](const Row& row) {
    return row.xid != end.xid && std::ranges::find(end.subtransactions, row.xid) == end.subtransactions.end();
  });
  if (rows.empty()) return;
  lcr::TransactionMark mark{.commit_lsn = record.begin, .end_lsn = {}, .commit_time = end.time};
  options_.take(lcr::make_begin_frame(end.xid, mark));
  for (const Row& row : rows) emit(row, end.xid);
  mark.end_lsn = record.end;
  options_.take(lcr::make_commit_frame(end.xid, false, mark));
}

void Builder::abort(const wal::TransactionRecord& end) {
  prepared_.erase(end.xid.value);
  if (transactions_.erase(end.xid) != 0) return;
  const auto found = transactions_.find(dictionary_.top_of(end.xid));
  if (found == transactions_.end()) return;
  const auto is_gone = [&](base::Xid xid) {
    return xid == end.xid || std::ranges::find(end.subtransactions, xid) != end.subtransactions.end();
  };
  std::erase_if(found->second.rows, [&](const Row& row) { return is_gone(row.xid); });
  std::erase_if(found->second.kept, [&](const auto& kept) { return is_gone(kept.first.xid); });
}

// `before`: none means all of them. A prepared transaction outlives the server.
void Builder::abort_all(base::Xid before) {
  std::erase_if(transactions_, [&](const auto& entry) {
    const base::Xid xid = entry.first;
    return !prepared_.contains(xid.value) && (!before || static_cast<int32_t>(xid.value - before.value) < 0);
  });
}

void Builder::emit(const Row& row, base::Xid top_level) {
  std::vector<base::RelationId> relations;
  uint32_t version = 0;
  for (const auto& table : row.tables) {
    version = described(*table);
    relations.push_back(table->description.relation);
  }
  if (row.kind == lcr::FrameKind::truncate) {
    options_.take(lcr::make_truncate_frame(top_level, {}, row.lsn, row.flags, relations));
    return;
  }
  const lcr::RowFrame frame{.kind = row.kind,
                            .flags = row.flags,
                            .xid = top_level,
                            .subxid = {},
                            .relation = relations.front(),
                            .table_version = version,
                            .lsn = row.lsn,
                            .old_tuple = std::as_bytes(std::span{row.old_tuple}),
                            .new_tuple = std::as_bytes(std::span{row.new_tuple})};
  std::vector<std::byte> bytes(lcr::row_frame_bytes(frame));
  lcr::write_row_frame(frame, bytes);
  options_.take(bytes);
}

uint32_t Builder::described(const MinedTable& table) {
  const auto [found, is_new] = described_.try_emplace(table.description.relation, table.description);
  if (!is_new && same_table(found->second, table.description)) return found->second.version;
  const uint32_t version = is_new ? 1 : found->second.version + 1;
  found->second = table.description;
  found->second.version = version;
  options_.take(lcr::make_table_frame(found->second));
  return version;
}

}  // namespace thalweg::mining
