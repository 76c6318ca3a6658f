#include "mining/builder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "mining/row_reader.h"
#include "pg/connection.h"
#include "wal/file_records.h"
#include "wal/little_endian.h"
#include "wal/logical_message.h"

namespace thalweg::mining {

namespace {

base::Error placed(base::Error error, const wal::WalRecord& record) {
  error.lsn = record.begin;
  error.xid = record.xid;
  return error;
}

bool is_heap(const wal::WalRecord& record) { return record.rmgr == wal::Rmgr::heap || record.rmgr == wal::Rmgr::heap2; }

}  // namespace

base::Result<void> Builder::apply(const wal::WalRecord& record, const wal::RecordParts& parts,
                                  const wal::WalFormat& format) {
  // Before the record: it may end a transaction that is kept, and then nobody knows its subtransactions any more.
  THALWEG_TRY(dictionary_.reach(record.begin));
  if (!was_ready_ && dictionary_.is_ready()) {
    was_ready_ = true;
    THALWEG_TRY(read_kept(format));
  }
  if (auto followed = dictionary_.apply(record, parts, format); !followed) {
    return std::unexpected(explained(std::move(followed).error()));
  }
  if (is_heap(record)) {
    THALWEG_TRY(was_ready_ ? apply_heap(record, parts) : keep(record, parts));
    return held_bytes_ > options_.memory_bytes ? stream_largest() : base::Result<void>{};
  }
  THALWEG_TRY(check_level(record, parts));
  if (wal::ends_all_transactions(record)) THALWEG_TRY(abort_all({}, record.begin));
  THALWEG_ASSIGN(const auto oldest, wal::parse_oldest_running(record, parts));
  if (oldest) THALWEG_TRY(abort_all(*oldest, record.begin));
  if (record.rmgr == wal::Rmgr::logical_message) return note_message(record, parts);
  if (record.rmgr != wal::Rmgr::transaction) return {};
  THALWEG_ASSIGN(const wal::TransactionRecord parsed, wal::parse_transaction(record, parts, format));
  return apply_end(record, parsed);
}

base::Result<void> Builder::apply_end(const wal::WalRecord& record, const wal::TransactionRecord& end) {
  switch (end.operation) {
    case wal::TransactionOperation::commit:
      return commit(record, end);
    case wal::TransactionOperation::abort:
      return abort(record, end);
    case wal::TransactionOperation::prepare:
      prepared_.insert(record.xid.value);
      return {};
    case wal::TransactionOperation::none:
    case wal::TransactionOperation::assignment:
      return {};
  }
  return {};
}

base::Lsn Builder::first_open() const {
  base::Lsn first;
  for (const auto& [xid, transaction] : transactions_) {
    if (!first || transaction.first < first) first = transaction.first;
  }
  return first;
}

Builder::Transaction& Builder::transaction_of(base::Xid top_level, base::Lsn lsn) {
  return transactions_.try_emplace(top_level, Transaction{.first = lsn}).first->second;
}

void Builder::add(Transaction& transaction, Row row) {
  transaction.bytes += row.bytes();
  held_bytes_ += row.bytes();
  transaction.rows.push_back(std::move(row));
}

// Theirs are the last ones: while a subtransaction is open, nobody but itself and those within it write.
void Builder::drop_rows_of(Transaction& transaction, const Xids& gone) {
  const auto drop = [&](auto& all, const auto& xid_of) {
    while (!all.empty() && gone.contains(xid_of(all.back()))) {
      transaction.bytes -= all.back().bytes();
      held_bytes_ -= all.back().bytes();
      all.pop_back();
    }
  };
  drop(transaction.rows, [](const Row& row) { return row.xid; });
  drop(transaction.kept, [](const Kept& kept) { return kept.record.xid; });
}

base::Result<void> Builder::keep(const wal::WalRecord& record, const wal::RecordParts& parts) {
  if (!record.xid) return {};
  // Files with lower numbers are the catalogs' (FirstNormalObjectId of src/include/access/transam.h).
  constexpr uint32_t kFirstNormalFile = 16384;
  const wal::BlockReference* const page = parts.block(0);
  if (page != nullptr && (page->file.database != dictionary_.database() || page->file.number < kFirstNormalFile)) {
    return {};
  }
  if (page == nullptr && record.rmgr == wal::Rmgr::heap2) return {};  // of no row; a truncate has no page either
  Transaction& transaction = transaction_of(dictionary_.top_of(record.xid), record.begin);
  Kept& kept = transaction.kept.emplace_back(
      record, std::string{reinterpret_cast<const char*>(record.body.data()), record.body.size()});
  transaction.bytes += kept.bytes();
  held_bytes_ += kept.bytes();
  if (held_bytes_ <= options_.memory_bytes) return {};
  return base::fail(base::ErrorCode::capture_memory_reached,
                    fmt::format("Transactions that are open while the capture starts have written more than {} MiB.",
                                options_.memory_bytes >> 20));
}

// No other transaction can have changed the tables of one that is open, and what it changed itself it sees now.
base::Result<void> Builder::read_kept(const wal::WalFormat& format) {
  std::vector<Kept> all;
  for (auto& [top_level, transaction] : transactions_) {
    for (const Kept& kept : transaction.kept) {
      transaction.bytes -= kept.bytes();
      held_bytes_ -= kept.bytes();
    }
    std::ranges::move(std::exchange(transaction.kept, {}), std::back_inserter(all));
  }
  wal::RecordParts parts;
  for (auto& [record, body] : all) {
    record.body = std::as_bytes(std::span{body});
    THALWEG_TRY(parts.parse(record, format));
    const base::Xid top_level = dictionary_.top_of(record.xid);
    if (auto known = check_kept(parts, top_level); !known) {
      note_failure(record, top_level, std::move(known).error());
    } else {
      THALWEG_TRY(apply_heap(record, parts));
    }
  }
  return {};
}

// Rows from before a change of the transaction's own cannot be told from those behind it: where it has changed a table,
// nobody knows how they were written.
base::Result<void> Builder::check_kept(const wal::RecordParts& parts, base::Xid top_level) {
  const wal::BlockReference* const page = parts.block(0);
  if (page == nullptr || !dictionary_.has_own_changes(top_level)) return {};
  const auto table_for = [&](base::Xid viewer) -> base::Result<std::shared_ptr<const MinedTable>> {
    const auto oid = dictionary_.relation_of(page->file, viewer);
    return oid ? table_of(*oid, viewer) : nullptr;
  };
  THALWEG_ASSIGN(const std::shared_ptr<const MinedTable> own, table_for(top_level));
  THALWEG_ASSIGN(const std::shared_ptr<const MinedTable> others, table_for({}));
  const auto counts = [](const auto& table) { return table && (table->is_wanted || table->is_toast); };
  if ((!counts(own) && !counts(others)) || (own && others && reads_as(*own, *others))) return {};
  base::Error error =
      base::fail(base::ErrorCode::wal_incomplete,
                 fmt::format("Transaction {} wrote rows of a table that it also changed or made, while the capture "
                             "started.",
                             top_level.value),
                 base::ErrorSide::source)
          .error();
  const lcr::TableDescription& table = (counts(others) ? others : own)->description;
  error.table = pg::quote_table(table.schema_name, table.table_name);
  return std::unexpected(std::move(error));
}

base::Error Builder::explained(base::Error error) const {
  if (!without_pages_from_ || error.code != base::ErrorCode::protocol_violation) return error;
  error.code = base::ErrorCode::wal_incomplete;
  error.side = base::ErrorSide::source;
  error.message += fmt::format(" From {} on, the source's full_page_writes was off.", to_string(without_pages_from_));
  return error;
}

// Below that level records lack old keys, new rows even, and TRUNCATEs are not told.
base::Result<void> Builder::check_level(const wal::WalRecord& record, const wal::RecordParts& parts) {
  THALWEG_ASSIGN(const auto has_pages, wal::parse_has_full_pages(record, parts));
  if (has_pages == false && !without_pages_from_) without_pages_from_ = record.begin;
  THALWEG_ASSIGN(const auto is_logical, wal::parse_is_logical(record, parts));
  if (is_logical.value_or(true) || record.begin < options_.from) return {};
  return std::unexpected(placed(
      base::fail(base::ErrorCode::wal_incomplete,
                 fmt::format("From {} on, the source's wal_level was below logical: its WAL does not tell all changes.",
                             to_string(record.begin)),
                 base::ErrorSide::source)
          .error(),
      record));
}

base::Result<void> Builder::note_message(const wal::WalRecord& record, const wal::RecordParts& parts) {
  if (options_.message_prefix.empty()) return {};
  THALWEG_ASSIGN(const auto message, wal::parse_logical_message(record, parts));
  const bool is_wanted = message && message->is_transactional && message->database == dictionary_.database() &&
                         message->prefix == options_.message_prefix;
  if (!is_wanted || !record.xid) return {};
  Row row{.xid = record.xid, .is_message = true, .lsn = record.begin};
  row.new_tuple = message->content;
  add(transaction_of(dictionary_.top_of(record.xid), record.begin), std::move(row));
  return {};
}

// A row that cannot be read may be of a transaction that is rolled back, or of one that began before the builder did,
// and so ends before `from`.
base::Result<void> Builder::apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts) {
  if (!record.xid) return {};
  THALWEG_ASSIGN(const wal::HeapChange made, heap_records_.parse(record, parts));
  const base::Xid top_level = dictionary_.top_of(record.xid);
  if (auto read = read_rows(record, made, top_level); !read) note_failure(record, top_level, std::move(read).error());
  return {};
}

void Builder::note_failure(const wal::WalRecord& record, base::Xid top_level, base::Error error) {
  Transaction& transaction = transaction_of(top_level, record.begin);
  if (!transaction.rows.empty() && transaction.rows.back().failure && transaction.rows.back().xid == record.xid) return;
  Row row{.xid = record.xid, .lsn = record.begin};
  row.failure = std::make_unique<const base::Error>(placed(std::move(error), record));
  add(transaction, std::move(row));
}

base::Result<void> Builder::read_rows(const wal::WalRecord& record, const wal::HeapChange& made, base::Xid top_level) {
  const wal::BlockReference* const page = made.new_page != nullptr ? made.new_page : made.old_page;
  switch (made.operation) {
    case wal::HeapOperation::none:
    case wal::HeapOperation::in_place:
      return {};
    case wal::HeapOperation::truncate:
      return truncate(record, made, top_level);
    case wal::HeapOperation::confirm:
      if (const auto found = transactions_.find(top_level); found != transactions_.end() && found->second.speculative) {
        add(found->second, std::move(*found->second.speculative));
        found->second.speculative.reset();
      }
      return {};
    case wal::HeapOperation::insert:
    case wal::HeapOperation::multi_insert:
    case wal::HeapOperation::update:
    case wal::HeapOperation::remove:
      break;
  }
  THALWEG_ASSIGN(const std::shared_ptr<const MinedTable> table, table_of(page->file, top_level));
  if (!table) return {};
  Transaction& transaction = transaction_of(top_level, record.begin);
  const uint64_t chunks_before = transaction.chunks.bytes();
  const bool inserts =
      made.operation == wal::HeapOperation::insert || made.operation == wal::HeapOperation::multi_insert;
  auto done = inserts ? insert(record, made, table, transaction) : change(record, made, table, transaction);
  if (!done) transaction.chunks.clear();
  transaction.bytes += transaction.chunks.bytes() - chunks_before;  // may wrap, and comes back
  held_bytes_ += transaction.chunks.bytes() - chunks_before;
  return done;
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
    Row row{.xid = record.xid, .kind = lcr::FrameKind::insert, .lsn = record.begin, .table = table};
    THALWEG_TRY(read_row(*table, added.tuple, transaction.chunks, row.new_tuple));
    if (change.is_speculative) {
      transaction.speculative = std::move(row);
    } else {
      add(transaction, std::move(row));
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
  if (table->is_inserts_only) {
    transaction.chunks.clear();
    return {};
  }
  if (!removes && !change.has_new_rows) return {};
  Row row{.xid = record.xid,
          .kind = removes ? lcr::FrameKind::remove : lcr::FrameKind::update,
          .lsn = record.begin,
          .table = table};
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
  add(transaction, std::move(row));
  transaction.chunks.clear();
  return {};
}

base::Result<void> Builder::truncate(const wal::WalRecord& record, const wal::HeapChange& change, base::Xid top_level) {
  if (change.database != dictionary_.database()) return {};
  Row row{.xid = record.xid, .kind = lcr::FrameKind::truncate, .lsn = record.begin};
  for (size_t at = 0; at < change.relations.size(); at += sizeof(uint32_t)) {
    THALWEG_ASSIGN(auto table, table_of(wal::load<uint32_t>(change.relations, at), top_level));
    if (table && table->is_wanted) row.truncated.push_back(std::move(table));
  }
  if (row.truncated.empty()) return {};
  row.flags = static_cast<uint16_t>((change.truncates_cascading ? lcr::kCascade : 0) |
                                    (change.truncates_sequences ? lcr::kRestartIdentity : 0));
  add(transaction_of(top_level, record.begin), std::move(row));
  return {};
}

base::Result<std::shared_ptr<const MinedTable>> Builder::table_of(uint32_t oid, base::Xid top_level) {
  const base::Xid viewer = dictionary_.has_own_changes(top_level) ? top_level : base::Xid{};
  forget_old_tables();
  const auto key = std::pair{viewer.value, oid};
  if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
  THALWEG_ASSIGN(auto table, read_table(dictionary_, oid, viewer, options_.is_wanted));
  return tables_.emplace(key, std::move(table)).first->second;
}

void Builder::forget_old_tables() {
  if (tables_as_of_ == dictionary_.changes()) return;
  forget_tables();
  tables_as_of_ = dictionary_.changes();
}

void Builder::forget_tables() {
  tables_.clear();
  by_file_.clear();
}

base::Result<std::shared_ptr<const MinedTable>> Builder::table_of(const wal::RelationFile& file, base::Xid top_level) {
  const bool is_own = dictionary_.has_own_changes(top_level);
  if (!is_own) {
    forget_old_tables();
    const auto found = by_file_.find(file.number);
    if (found != by_file_.end() && found->second.first == file) return found->second.second;
  }
  std::shared_ptr<const MinedTable> table;
  if (const auto oid = dictionary_.relation_of(file, top_level)) {
    THALWEG_ASSIGN(table, table_of(*oid, top_level));
    if (table && !table->is_wanted && !table->is_toast) table = nullptr;
  }
  if (!is_own) by_file_.insert_or_assign(file.number, std::pair{file, table});
  return table;
}

// --- ends

base::Result<void> Builder::commit(const wal::WalRecord& record, const wal::TransactionRecord& end) {
  prepared_.erase(end.xid.value);
  const auto found = transactions_.extract(end.xid);
  if (found.empty()) return {};
  Transaction& transaction = found.mapped();
  forget(transaction);
  if (record.begin < options_.from) {
    return transaction.is_streamed ? options_.sink->rolled_back(end.xid, {}, record.begin) : base::Result<void>{};
  }
  // A subtransaction that is not named did not commit.
  const Xids committed(end.subtransactions.begin(), end.subtransactions.end());
  std::erase_if(transaction.rows, [&](const Row& row) { return row.xid != end.xid && !committed.contains(row.xid); });
  if (transaction.rows.empty() && !transaction.is_streamed) return {};
  const auto failed = std::ranges::find_if(transaction.rows, [](const Row& row) { return row.failure != nullptr; });
  if (failed != transaction.rows.end()) return std::unexpected(*failed->failure);
  lcr::TransactionMark mark{.commit_lsn = record.begin, .end_lsn = {}, .commit_time = end.time};
  if (!transaction.is_streamed) THALWEG_TRY(options_.sink->begin(end.xid, mark));
  for (const Row& row : transaction.rows) THALWEG_TRY(emit(row, end.xid, transaction.is_streamed));
  mark.end_lsn = record.end;
  if (transaction.is_streamed) return options_.sink->commit_streamed(end.xid, mark, end.subtransactions);
  return options_.sink->commit(end.xid, mark);
}

base::Result<void> Builder::abort(const wal::WalRecord& record, const wal::TransactionRecord& end) {
  prepared_.erase(end.xid.value);
  if (const auto found = transactions_.extract(end.xid); !found.empty()) {
    forget(found.mapped());
    if (!found.mapped().is_streamed) return {};
    return options_.sink->rolled_back(end.xid, {}, record.begin);
  }
  const base::Xid top_level = dictionary_.top_of(end.xid);
  const auto found = transactions_.find(top_level);
  if (found == transactions_.end()) return {};
  Xids gone(end.subtransactions.begin(), end.subtransactions.end());
  gone.insert(end.xid);
  drop_rows_of(found->second, gone);
  for (const base::Xid xid : gone) {
    if (found->second.streamed_subtransactions.erase(xid.value) == 0) continue;
    THALWEG_TRY(options_.sink->rolled_back(top_level, xid, record.begin));
  }
  return {};
}

// `before`: none means all of them. A prepared transaction outlives the server.
base::Result<void> Builder::abort_all(base::Xid before, base::Lsn lsn) {
  for (auto entry = transactions_.begin(); entry != transactions_.end();) {
    const base::Xid xid = entry->first;
    const bool is_dead =
        !prepared_.contains(xid.value) && (!before || static_cast<int32_t>(xid.value - before.value) < 0);
    if (!is_dead) {
      ++entry;
      continue;
    }
    forget(entry->second);
    if (entry->second.is_streamed) THALWEG_TRY(options_.sink->rolled_back(xid, {}, lsn));
    entry = transactions_.erase(entry);
  }
  return {};
}

// --- what goes out

// A quarter more than it must: otherwise each further row would look for the largest one again.
base::Result<void> Builder::stream_largest() {
  while (held_bytes_ > options_.memory_bytes / 4 * 3) {
    const auto weight = [](const auto& entry) {
      const Transaction& transaction = entry.second;
      const bool goes_out = std::ranges::any_of(transaction.rows, [](const Row& row) { return !row.failure; });
      return goes_out ? transaction.bytes : 0;
    };
    const auto largest = std::ranges::max_element(transactions_, {}, weight);
    if (largest == transactions_.end() || weight(*largest) == 0) return {};
    THALWEG_TRY(stream(largest->first, largest->second));
  }
  return {};
}

base::Result<void> Builder::stream(base::Xid top_level, Transaction& transaction) {
  if (!transaction.is_streamed) ++streamed_transactions_;
  transaction.is_streamed = true;
  std::vector<Row> failures;  // stay
  for (Row& row : transaction.rows) {
    if (row.failure) {
      failures.push_back(std::move(row));
      continue;
    }
    THALWEG_TRY(emit(row, top_level, true));
    if (row.xid != top_level) transaction.streamed_subtransactions.insert(row.xid.value);
    transaction.bytes -= row.bytes();
    held_bytes_ -= row.bytes();
  }
  transaction.rows = std::move(failures);
  return {};
}

base::Result<void> Builder::emit(const Row& row, base::Xid top_level, bool is_streamed) {
  if (row.is_message) {
    return is_streamed ? base::Result<void>{} : options_.sink->message(top_level, row.new_tuple);
  }
  const base::Xid subxid = is_streamed && row.xid != top_level ? row.xid : base::Xid{};
  const auto flags = static_cast<uint16_t>(row.flags | (is_streamed ? lcr::kStreamed : 0));
  if (row.kind == lcr::FrameKind::truncate) {
    std::vector<base::RelationId> relations;
    for (const auto& table : row.truncated) {
      THALWEG_TRY(describe(table));
      relations.push_back(table->description.relation);
    }
    return options_.sink->truncate(
        {.flags = flags, .xid = top_level, .subxid = subxid, .lsn = row.lsn, .relations = relations});
  }
  THALWEG_TRY(describe(row.table));
  return options_.sink->change({.kind = row.kind,
                                .flags = flags,
                                .xid = top_level,
                                .subxid = subxid,
                                .relation = row.table->description.relation,
                                .table_version = 0,
                                .lsn = row.lsn,
                                .old_tuple = std::as_bytes(std::span{row.old_tuple}),
                                .new_tuple = std::as_bytes(std::span{row.new_tuple})});
}

base::Result<void> Builder::describe(const std::shared_ptr<const MinedTable>& table) {
  std::shared_ptr<const MinedTable>& last = described_[table->description.relation];
  if (last == table) return {};
  const bool is_same = last != nullptr && same_description(last->description, table->description);
  last = table;
  return is_same ? base::Result<void>{} : options_.sink->describe(*table);
}

}  // namespace thalweg::mining
