#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "mining/mined_table.h"
#include "pg/connection.h"

// The source as far as mining depends on it: its settings, and the tables of the stream's publications. These keep the
// source from updates that nobody could apply; they are no publications of what is mined.

// Publications are read as they are now, and the WAL that is mined may be older: what each table gave then is kept in a
// file. Logical decoding reads it from the catalogs of that time (get_rel_sync_entry of
// src/backend/replication/pgoutput/pgoutput.c).

namespace thalweg::capture {

class MinedTables {
 public:
  // Fails with unsupported_table where one of them is partitioned, or not of the heap.
  static base::Result<MinedTables> read(pg::Connection& source, const std::vector<std::string>& publications);
  // Adds what `file` has of earlier reads, and writes all that rows behind `needed_from` need. Then it is at that
  // position.
  base::Result<void> recall(const std::filesystem::path& file, base::Lsn needed_from);

  // For a reader that asks no source and writes nothing: as the file has them, at that position.
  static base::Result<MinedTables> recalled(const std::filesystem::path& file, base::Lsn needed_from);

  // Goes on to the record that begins there. True: tables may be wanted otherwise than before.
  bool go_to(base::Lsn record) { return record >= next_ && enter(record); }
  // Of a table that the stream has now, as of the position.
  mining::Wanted wanted(uint32_t table) const {
    const auto found = wanted_.find(table);
    return found == wanted_.end() ? mining::Wanted::nothing : found->second;
  }
  // Whether the stream had the table then, too.
  bool had(uint32_t table) const { return then_ < reads_.size() && reads_[then_].tables.contains(table); }
  std::vector<uint32_t> oids() const;

 private:
  using Tables = std::map<uint32_t, mining::Wanted>;
  // From a position on, until the next one.
  struct Read {
    base::Lsn from;
    Tables tables;
  };
  static base::Result<std::vector<Read>> load(const std::filesystem::path& file);
  base::Result<void> save(const std::filesystem::path& file) const;
  bool enter(base::Lsn record);

  std::vector<Read> reads_;     // rising; the last is what the source says now
  size_t then_ = 0;             // the one at the position
  base::Lsn next_{UINT64_MAX};  // where the next one begins
  Tables wanted_;
};

// Fails with wal_level_too_low, full_page_writes_off, source_read_only (a standby), unsupported_version or
// unsupported_table (the database is not UTF-8).
base::Result<void> check_source(pg::Connection& source);

// For a beginning, which reads from the last checkpoint on: full_page_writes_off, where that was off then. Turning it
// on makes no checkpoint.
base::Result<void> check_checkpoint(pg::Connection& source);

}  // namespace thalweg::capture
