#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/dictionary.h"
#include "lcr/frame.h"
#include "mining/mined_table.h"
#include "mining/toast_chunks.h"
#include "wal/heap_records.h"
#include "wal/record_parts.h"
#include "wal/transaction_records.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// Builds LCR frames from the WAL: the same ones that logical decoding gives, in the order of commits
// (src/backend/replication/logical/{decode,reorderbuffer}.c and pgoutput).

namespace thalweg::mining {

struct BuilderOptions {
  base::Lsn from;  // transactions that commit before it are left out
  IsWanted is_wanted;
  // Takes the frames, in order; they are gone when it returns.
  std::function<void(std::span<const std::byte>)> take;
};

// Owner: one thread. A transaction's rows are kept until it ends. Nothing follows an error.
class Builder {
 public:
  // The dictionary outlives it, and is given the same records by nobody else.
  Builder(dictionary::Dictionary& dictionary, BuilderOptions options)
      : dictionary_(dictionary), options_(std::move(options)) {}

  // The next record. Fails as Dictionary::apply does; with unsupported_table where a captured table has a column that
  // cannot be read; with replica_identity_missing where a row was removed that cannot be told from others.
  base::Result<void> apply(const wal::WalRecord& record, const wal::RecordParts& parts, const wal::WalFormat& format);

 private:
  struct Row {
    base::Xid xid;  // may be a subtransaction's
    lcr::FrameKind kind = lcr::FrameKind::insert;
    uint16_t flags = 0;
    base::Lsn lsn;
    std::vector<std::shared_ptr<const MinedTable>> tables = {};  // one; of a truncate, all of them
    std::string old_tuple = {};
    std::string new_tuple = {};
  };
  struct Transaction {
    std::vector<Row> rows;
    ToastChunks chunks;
    std::optional<Row> speculative;
    // Records that came before the dictionary was ready, and their bodies.
    std::vector<std::pair<wal::WalRecord, std::string>> kept;
  };

  base::Result<void> apply_heap(const wal::WalRecord& record, const wal::RecordParts& parts);
  base::Result<void> read_kept(const wal::WalFormat& format);
  base::Result<void> insert(const wal::WalRecord& record, const wal::HeapChange& change,
                            const std::shared_ptr<const MinedTable>& table, Transaction& transaction);
  base::Result<void> change(const wal::WalRecord& record, const wal::HeapChange& change,
                            const std::shared_ptr<const MinedTable>& table, Transaction& transaction);
  base::Result<void> truncate(const wal::WalRecord& record, const wal::HeapChange& change, base::Xid top_level);
  base::Result<std::shared_ptr<const MinedTable>> table_of(uint32_t oid, base::Xid top_level);
  void commit(const wal::WalRecord& record, const wal::TransactionRecord& end);
  void abort(const wal::TransactionRecord& end);
  void abort_all(base::Xid before);
  void emit(const Row& row, base::Xid top_level);
  uint32_t described(const MinedTable& table);

  dictionary::Dictionary& dictionary_;
  const BuilderOptions options_;
  wal::HeapRecords heap_records_;
  std::unordered_map<base::Xid, Transaction> transactions_;  // by top-level transaction
  std::set<uint32_t> prepared_;
  // Tables as those see them that changed no catalog, as of `tables_as_of_`.
  std::unordered_map<uint32_t, std::shared_ptr<const MinedTable>> tables_;
  uint64_t tables_as_of_ = 0;
  std::unordered_map<base::RelationId, lcr::TableDescription> described_;  // as the last TABLE frame has them
  bool was_ready_ = false;
};

}  // namespace thalweg::mining
