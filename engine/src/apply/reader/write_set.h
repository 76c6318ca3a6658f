#pragma once

#include <vector>

#include "apply/transaction.h"
#include "base/error.h"
#include "lcr/frame.h"

// Hashes of the keys that a transaction writes and needs (README.md, "Which transactions depend on each other").

namespace thalweg::apply {

// Owner: the reader.
class WriteSetBuilder {
 public:
  // Fills writes, reads, table_hashes and lcrs, and barrier where the transaction holds a TRUNCATE. A spilled
  // transaction gets its tables only and is a barrier.
  // Fails with corrupt_frame where a row came before its table's description.
  // `order_keyless`: tables without a key count as one key each, which orders all their changes; without it they have
  // no order among transactions (commit_serialization none).
  base::Result<void> build(Transaction& transaction, bool order_keyless);
  // The same for one frame of a spilled transaction, whose `spilled` file cannot be read yet.
  base::Result<void> note_table(Transaction& transaction, const metadata::TableMap& tables,
                                const lcr::FrameView& frame);

 private:
  base::Result<void> add(Transaction& transaction, const lcr::FrameView& frame);
  void add_row(Transaction& transaction, const metadata::TableMetadata& table, lcr::FrameKind kind);
  void add_keys(Transaction& transaction, const metadata::TableMetadata& table, const std::vector<lcr::Value>& values,
                const std::vector<lcr::Value>* other, bool is_partial);

  bool order_keyless_ = true;
  std::vector<lcr::Value> old_;
  std::vector<lcr::Value> new_;
  const metadata::TableMetadata* last_table_ = nullptr;
  const metadata::TableMap* last_map_ = nullptr;
};

}  // namespace thalweg::apply
