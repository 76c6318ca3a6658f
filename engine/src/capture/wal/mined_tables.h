#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "mining/mined_table.h"
#include "pg/connection.h"

// The source as far as mining depends on it: its settings, and the tables of the stream's publications. These keep the
// source from updates that nobody could apply; they are no publications of what is mined.

namespace thalweg::capture {

class MinedTables {
 public:
  // Fails with unsupported_table where one of them is partitioned, or not of the heap.
  static base::Result<MinedTables> read(pg::Connection& source, const std::vector<std::string>& publications);

  mining::Wanted wanted(uint32_t table) const {
    const auto found = tables_.find(table);
    return found == tables_.end() ? mining::Wanted::nothing : found->second;
  }
  std::vector<uint32_t> oids() const;

 private:
  std::map<uint32_t, mining::Wanted> tables_;
};

// Fails with wal_level_too_low, full_page_writes_off, source_read_only (a standby), unsupported_version or
// unsupported_table (the database is not UTF-8).
base::Result<void> check_source(pg::Connection& source);

// For a beginning, which reads from the last checkpoint on: full_page_writes_off, where that was off then. Turning it
// on makes no checkpoint.
base::Result<void> check_checkpoint(pg::Connection& source);

}  // namespace thalweg::capture
