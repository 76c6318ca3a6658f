#pragma once

#include <vector>

#include "apply/reader/table_writer.h"
#include "apply/transaction.h"
#include "base/error.h"
#include "lcr/frame.h"

// Hashes of the keys that a transaction writes and needs (README.md, "Which transactions depend on each other").

namespace thalweg::apply {

// Owner: the reader.
class WriteSetBuilder {
 public:
  // `orders_all`: every transaction waits for the one before it. Else those do that have changes of tables with
  // statement handlers: the statements may write what no key of theirs tells.
  WriteSetBuilder(TableWriter& tables, bool orders_all) : tables_(tables), orders_all_(orders_all) {}

  // Fills tables, writes, reads, possible_writes, the hashes of tables and lcrs, and barrier where the transaction
  // holds a TRUNCATE. A spilled transaction gets its tables only and is a barrier. Fails as TableWriter::find.
  // `orders_keyless`: tables without a key count as one key each, which orders all their changes; without it they have
  // no order among transactions (commit_serialization none).
  base::Result<void> build(Transaction& transaction, bool orders_keyless);
  // Adds the table of one frame of a spilled transaction, whose `spilled` file cannot be read yet.
  base::Result<void> note_table(Transaction& transaction, const lcr::FrameView& frame);

 private:
  static void note(Transaction& transaction, const TableWriter::Table& table);
  base::Result<const metadata::TableMetadata*> note_row(Transaction& transaction, const lcr::FrameView& frame);
  base::Result<void> add(Transaction& transaction, const lcr::FrameView& frame);
  void add_row(Transaction& transaction, const metadata::TableMetadata& table, lcr::FrameKind kind);
  void add_keys(Transaction& transaction, const metadata::TableMetadata& table, const std::vector<lcr::Value>& values,
                const std::vector<lcr::Value>* other, bool is_partial);

  TableWriter& tables_;
  const bool orders_all_;
  bool orders_keyless_ = true;
  bool has_statements_ = false;  // the transaction at hand
  std::vector<lcr::Value> old_;
  std::vector<lcr::Value> new_;
};

}  // namespace thalweg::apply
