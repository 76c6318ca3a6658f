#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "instantiation/ranges.h"
#include "instantiation/table_identity.h"
#include "pg/connection.h"

// Instantiation's rows in schema `thalweg` of the destination: the copied ranges and their snapshots. The transaction
// that copies a range records it, so after a crash the rows tell the truth (docs/internals/instantiation.md).

namespace thalweg::instantiation {

// TRUNCATE of a whole table at the source.
struct Truncation {
  uint32_t xid = 0;  // the transaction, or subtransaction
  base::Lsn commit_lsn = {};
};

struct TableRecord {
  TableName table;       // as the stream names it
  TableName there = {};  // at the destination
  bool created = false;  // by the engine: its indexes and constraints are the engine's to add
  bool planned = false;  // its ranges are recorded
  KeyColumns range_key;  // that their bounds are of; empty: an older engine planned them
  bool finished = false;
  bool constraints_done = false;
  base::Lsn copied_from;  // lowest snapshot of its ranges
  base::Lsn copied_to;    // highest
  int64_t rows_estimated = 0;
  double seconds = 0;
  TableIdentity identity;
  bool inserts_only = false;            // as the stream wants it now; not stored, its identity has what was captured
  std::optional<TableTrouble> trouble;  // until somebody has it resolved, whatever the source shows meanwhile
  bool stopped = false;                 // changes have been left out since: only another copy brings it back
  bool copy_again = false;              // asked for; until the copy is finished
  // Those of the whole table that are applied: the newest, of partitioned tables only.
  std::vector<Truncation> truncations;
  std::vector<WrittenLeaf> written = {};  // noted by apply, and not settled by a look
  int64_t errors_discarded = 0;           // transactions of the error queue that this copy has made obsolete
};

struct RangeRecord {
  TableName table;
  int number = 0;
  KeyRange range;
  bool copied = false;
  int64_t rows = 0;
  int64_t bytes = 0;
};

struct NewTable {
  TableName table;
  TableName there;  // at the destination
  bool created = false;
  TableIdentity identity;
};

struct TablePlan {
  TableName table;
  int64_t rows_estimated = 0;
  KeyColumns key = {};  // that the bounds are of
  std::vector<KeyRange> ranges = {};
};

struct FinishedTable {
  TableName table;
  double seconds = 0;
};

struct InstantiationRecord {
  base::UnixMicros started_at;
  std::optional<base::UnixMicros> finished_at;
  std::vector<std::string> warnings;
};

// Owner: the connection's owner. Each method is one statement, for however many tables, or one transaction of its own
// where it says so.
class Bookkeeping {
 public:
  Bookkeeping(pg::Connection& connection, std::string stream_id)
      : connection_(connection), stream_id_(std::move(stream_id)) {}

  base::Result<bool> exists();  // the tables; fails where the schema is not to be trusted (pg/bookkeeping_trust.h)
  // Creates missing tables. Call it within the caller's transaction, which may be rolled back.
  base::Result<void> create_tables();
  // Gives tables of an older engine the columns that they lack.
  base::Result<void> upgrade();
  base::Result<void> begin();  // the stream's row, if missing
  base::Result<std::optional<InstantiationRecord>> read();
  base::Result<std::vector<TableRecord>> tables();
  base::Result<std::vector<RangeRecord>> ranges();
  // The youngest snapshot of the copies that count, finished or not; zero: none.
  base::Result<base::Lsn> youngest_snapshot();

  base::Result<void> add_tables(const std::vector<NewTable>& tables);
  // Both do nothing to a table with a newer recorded identity, or one that is to be copied again. Nor is a stopped
  // one's trouble changed by somebody who has not read that it is stopped.
  base::Result<void> set_identity(const TableName& table, const TableIdentity& identity);
  base::Result<void> set_trouble(const TableName& table, const TableIdentity& was, const TableTrouble& trouble,
                                 bool stopped);
  // Forgets truncations that committed below: they are needed no longer.
  base::Result<void> forget_truncations(base::Lsn below);
  // Notes partitions as apply does. Belongs into the copy, before it reads them.
  base::Result<void> note_partitions(const TableName& table, const std::vector<WrittenLeaf>& leaves);
  // Forgets these of the partitions that are noted, unless they have been noted anew.
  base::Result<void> forget_partitions(const TableName& table, const std::vector<WrittenLeaf>& leaves);
  // An operator's decision: the table's present identity becomes its recorded one.
  // Notes of partitions stay whose transactions, from `applied` on, may not be at the destination yet.
  base::Result<void> accept(const TableName& table, const TableIdentity& identity, base::Lsn applied);
  // The stream has another name for it, or the destination has.
  base::Result<void> rename_table(const TableRecord& record, const TableName& to, const TableName& there);
  // Marks the copied ranges as void; then, once the rows are deleted, records the ranges to copy.
  base::Result<void> ask_for_copy(const TableName& table);
  base::Result<void> begin_copy_again(const TableName& table, bool created, const TableIdentity& identity);
  base::Result<void> remove_table(const TableName& table);
  // In a transaction of its own: all of the tables' ranges.
  base::Result<void> plan_tables(const std::vector<TablePlan>& plans);
  // No range of it is planned or copied any more.
  base::Result<void> forget_plan(const TableName& table);
  // Belongs into the transaction that copies the range.
  base::Result<void> range_copied(const TableName& table, int number, base::Lsn snapshot, int64_t rows, int64_t bytes);
  // Sums up the ranges' snapshots. `snapshot` stands for a table that has no ranges: nothing was to be copied.
  base::Result<void> finish_tables(const std::vector<FinishedTable>& tables, base::Lsn snapshot);
  base::Result<void> constraints_done(const std::vector<TableName>& tables);
  base::Result<void> warn(const std::string& warning);
  base::Result<void> finish();
  // Deletes the stream's rows, and the tables when they hold no other stream's.
  base::Result<void> forget();

 private:
  base::Result<void> update(const TableName& table, std::string_view set, std::string_view value);

  pg::Connection& connection_;
  std::string stream_id_;
};

}  // namespace thalweg::instantiation
