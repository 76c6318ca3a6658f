#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "instantiation/captured_tables.h"

// Partitions that have another file at the source than when they were recorded, or made: their table was truncated as a
// whole, which is published and comes through the stream; or they were truncated alone, or rewritten, which is not.

namespace thalweg::instantiation {

// The partitions with another file, as known from look to look. Owner: one thread.
class Rewrites {
 public:
  // The tables that have any: settle() has something to decide of them.
  static std::set<TableName> open(const TableRecords& records, const SourceTables& now);

  // Takes those over whose table's TRUNCATE is applied, by the transaction that changed the partition's catalog row,
  // and those of tables that are `kept`: a rule drops each TRUNCATE of them, so that the destination keeps the rows.
  // Others wait, and are made to look in `now` as they were, until everything that had committed when they were seen
  // first is applied: the rest is trouble. `low_watermark` was read before the records' truncations. A table, or
  // partition, called `suspect` has made the stream fail, so that nothing more may come: it does not wait.
  // Returns the tables whose identity is another now.
  std::vector<TableName> settle(TableRecords& records, SourceTables& now, base::Lsn low_watermark,
                                std::string_view suspect, const std::set<TableName>& kept = {});

 private:
  using File = std::pair<uint32_t, uint32_t>;  // a leaf's relation, its file
  std::map<File, base::Lsn> seen_;             // where the WAL ended when it was seen first
};

}  // namespace thalweg::instantiation
