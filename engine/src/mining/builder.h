#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/dictionary.h"
#include "lcr/frame.h"
#include "mining/change_sink.h"
#include "mining/mined_table.h"
#include "mining/toast_chunks.h"
#include "wal/heap_records.h"
#include "wal/record_parts.h"
#include "wal/transaction_records.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// Builds changes from the WAL: the same ones that logical decoding gives, in the order of commits
// (src/backend/replication/logical/{decode,reorderbuffer}.c and pgoutput).

namespace thalweg::mining {

struct BuilderOptions {
  base::Lsn from;  // transactions that commit before it are left out
  IsWanted is_wanted;
  ChangeSink* sink = nullptr;       // outlives the builder
  std::string message_prefix = {};  // of the logical messages that are wanted; empty: none are
  // Of rows that are kept. Above it the largest transaction goes out before its end, in pieces.
  uint64_t memory_bytes = UINT64_MAX;
};

// Owner: one thread. A transaction's rows are kept until it ends. Nothing follows an error.
class Builder {
 public:
  // The dictionary outlives it, and is given the same records by nobody else.
  Builder(dictionary::Dictionary& dictionary, BuilderOptions options)
      : dictionary_(dictionary), options_(std::move(options)), was_ready_(dictionary.is_ready()) {}

  // The next record. Fails as Dictionary::apply and the sink do; at the commit of a transaction with unsupported_table
  // where a captured table has a column that cannot be read, and with replica_identity_missing where a row was removed
  // that cannot be told from others; with capture_memory_reached where transactions that are open while the dictionary
  // begins are too large; with wal_incomplete where the WAL does not have what is needed.
  base::Result<void> apply(const wal::WalRecord& record, const wal::RecordParts& parts, const wal::WalFormat& format);

  // Tables are read anew: is_wanted() says something else from now on.
  void forget_tables();

  // Where the first record that counts lies of all transactions that are open; none: none is. A reader that begins
  // there, or before, finds them whole.
  base::Lsn first_open() const;
  uint64_t held_bytes() const { return held_bytes_; }
  size_t open_transactions() const { return transactions_.size(); }
  uint64_t streamed_transactions() const { return streamed_transactions_; }  // ever

 private:
  struct Row {
    base::Xid xid;  // may be a subtransaction's
    lcr::FrameKind kind = lcr::FrameKind::insert;
    bool is_message = false;  // then `new_tuple` is its content
    uint16_t flags = 0;
    base::Lsn lsn;
    std::shared_ptr<const MinedTable> table = {};
    std::vector<std::shared_ptr<const MinedTable>> truncated = {};
    std::string old_tuple = {};
    std::string new_tuple = {};
    // Why it could not be read: what counts is whether its transaction commits.
    std::unique_ptr<const base::Error> failure = {};

    uint64_t bytes() const { return sizeof(Row) + old_tuple.capacity() + new_tuple.capacity(); }
  };
  // A record that came before the dictionary was ready.
  struct Kept {
    wal::WalRecord record;
    std::string body;

    uint64_t bytes() const { return sizeof(Kept) + body.capacity(); }
  };
  struct Transaction {
    base::Lsn first;  // of its records that count
    std::vector<Row> rows = {};
    ToastChunks chunks = {};
    std::optional<Row> speculative = {};
    std::vector<Kept> kept = {};
    uint64_t bytes = 0;        // of rows and of what is kept
    bool is_streamed = false;  // a piece of it went out
    std::set<uint32_t> streamed_subtransactions = {};
  };
  using Transactions = std::unordered_map<base::Xid, Transaction>;
  using Xids = std::unordered_set<base::Xid>;

  base::Result<void> apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Result<void> read_rows(const wal::WalRecord& record, const wal::HeapChange& change, base::Xid top_level);
  void note_failure(const wal::WalRecord& record, base::Xid top_level, base::Error error);
  base::Result<void> keep(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Result<void> read_kept(const wal::WalFormat& format);
  base::Result<void> check_kept(const wal::RecordParts& parts, base::Xid top_level);
  base::Result<void> check_level(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Error explained(base::Error error) const;
  base::Result<void> apply_end(const wal::WalRecord& record, const wal::TransactionRecord& end);
  base::Result<void> note_message(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Result<void> insert(const wal::WalRecord& record, const wal::HeapChange& change,
                            const std::shared_ptr<const MinedTable>& table, Transaction& transaction);
  base::Result<void> change(const wal::WalRecord& record, const wal::HeapChange& change,
                            const std::shared_ptr<const MinedTable>& table, Transaction& transaction);
  base::Result<void> truncate(const wal::WalRecord& record, const wal::HeapChange& change, base::Xid top_level);
  base::Result<std::shared_ptr<const MinedTable>> table_of(uint32_t oid, base::Xid top_level);
  // Null: its rows are not wanted.
  base::Result<std::shared_ptr<const MinedTable>> table_of(const wal::RelationFile& file, base::Xid top_level);
  void forget_old_tables();
  Transaction& transaction_of(base::Xid top_level, base::Lsn lsn);
  void add(Transaction& transaction, Row row);
  void drop_rows_of(Transaction& transaction, const Xids& gone);
  void forget(const Transaction& transaction) { held_bytes_ -= transaction.bytes; }
  base::Result<void> stream_largest();
  base::Result<void> stream(base::Xid top_level, Transaction& transaction);
  base::Result<void> commit(const wal::WalRecord& record, const wal::TransactionRecord& end);
  base::Result<void> abort(const wal::WalRecord& record, const wal::TransactionRecord& end);
  base::Result<void> abort_all(base::Xid before, base::Lsn lsn);
  base::Result<void> emit(const Row& row, base::Xid top_level, bool is_streamed);
  base::Result<void> describe(const std::shared_ptr<const MinedTable>& table);

  dictionary::Dictionary& dictionary_;
  const BuilderOptions options_;
  wal::HeapRecords heap_records_;
  Transactions transactions_;  // by top-level transaction
  uint64_t held_bytes_ = 0;
  uint64_t streamed_transactions_ = 0;
  std::set<uint32_t> prepared_;
  // Tables by who sees them so (0: whoever changed no catalog) and their oid, as of `tables_as_of_`.
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const MinedTable>> tables_;
  std::unordered_map<uint32_t, std::pair<wal::RelationFile, std::shared_ptr<const MinedTable>>> by_file_;
  uint64_t tables_as_of_ = 0;
  std::unordered_map<base::RelationId, std::shared_ptr<const MinedTable>> described_;  // as the sink has them
  bool was_ready_ = false;
  base::Lsn without_pages_from_;  // where full_page_writes was turned off
};

}  // namespace thalweg::mining
