#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "lcr/frame.h"

// The source's half of what apply knows of a table: what TABLE frames said. It came once and cannot be asked for
// again, so whoever may have to load a table's metadata (metadata_cache.h) keeps it.

namespace thalweg::metadata {

// One version of a table at the source. Immutable; shared by the reader and the transactions that have rows of it.
struct SourceTable {
  // The description's number in this apply, from 1, never used again: the key of its metadata. Not relation and
  // version, because a capture that starts anew counts versions from 1.
  uint64_t id = 0;
  lcr::TableDescription description;
  std::vector<std::byte> frame;  // the TABLE frame, for the error queue
  std::string quoted_name;
  // Initial copy (apply.h, CatchUpSpan).
  base::Lsn copied_from;
  base::Lsn copied_to;
  std::string recorded_by;  // the stream whose row in thalweg.stream_table it has; empty: none
};

// The tables of one transaction. Owner: whoever owns the transaction.
class TransactionTables {
 public:
  void add(const std::shared_ptr<const SourceTable>& table);
  // nullptr where no such row was in the transaction.
  const SourceTable* find(base::RelationId relation, uint32_t version) const;
  // The highest version of the table; TRUNCATE names none.
  const SourceTable* latest(base::RelationId relation) const;
  std::span<const std::shared_ptr<const SourceTable>> all() const { return tables_; }

 private:
  const SourceTable* added_last_ = nullptr;
  std::vector<std::shared_ptr<const SourceTable>> tables_;  // sorted by relation and version
};

}  // namespace thalweg::metadata
