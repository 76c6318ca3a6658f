#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "instantiation/called_code.h"
#include "instantiation/destination_names.h"
#include "instantiation/progress.h"
#include "instantiation/table_name.h"
#include "pg/connection.h"
#include "pg/publication_names.h"
#include "rules/rule_set.h"
#include "transform/step.h"

// Instantiation: a stream's tables at the destination, filled from a snapshot of the source, with the positions from
// which changes apply. Resumable: docs/internals/instantiation.md has the protocol.

namespace thalweg::instantiation {

struct InstantiationOptions {
  std::string stream_id;
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  pg::PublicationNames publications;  // empty: whether a table is published is not looked at
  std::vector<TableName> tables;
  std::set<TableName> inserts_only;  // of these: updates and deletes are given up
  AcceptedCode accepted_code;        // of these: what definitions may call at the destination
  // Of these: rows that any of their sets, the stream's and the destination's, would not let pass are not copied.
  std::map<TableName, std::vector<rules::RuleSets>> rules = {};
  std::map<TableName, transform::Steps> transformations = {};  // of these: their rows are copied so
  DestinationNames names = {};                                 // of these
  std::string mask_key = {};                                   // of their masks
  std::string source_name = {};                                // a rule's attribute `source`
  bool stops_tables = false;  // a table's trouble stops the table; else assess() fails with table_trouble
  int copy_workers = 2;
  int64_t copy_range_rows = 500'000;
  int64_t copy_index_memory_mb = 256;  // of each worker, unless the destination gives it more
  bool initial_copy = true;
  pg::SessionBoard* board = nullptr;  // for its sessions on both sides; it outlives the instantiation
};

// Between copied_from and copied_to a change may or may not be in the copy already; equal where one snapshot had all.
struct CopiedTable {
  TableName table;  // at the destination
  TableName stream_table;
  uint32_t relation = 0;  // pg_class.oid at the source; 0: not known
  base::Lsn copied_from;
  base::Lsn copied_to;
  bool stopped = false;  // its changes are left out
};

struct PublishedTables {
  std::vector<TableName> changes;
  std::vector<TableName> inserts;
};

struct Assessment {
  bool needs_snapshot = false;     // some table waits for its copy, or for its position
  bool needs_constraints = false;  // some table waits for its indexes and constraints
};

// Owner: one thread. Any thread may read the progress through the given Progress.
//
// Order of calls:  assess();  [publication]  identify();  [slot and snapshot]  prepare();  copy(snapshot);
// add_constraints(applied);  copied_tables().
class Instantiation {
 public:
  // `progress` and `stop` outlive it. Setting `stop` ends copy() early with engine_stopping, and abandons its sessions,
  // whatever they wait for.
  Instantiation(InstantiationOptions options, Progress& progress, const std::atomic<bool>& stop);
  ~Instantiation();
  Instantiation(const Instantiation&) = delete;
  Instantiation& operator=(const Instantiation&) = delete;

  // Opens both sides. assess() does it where it has not been done; another thread may do it before.
  base::Result<void> connect();
  // Reads both sides, checks every table and rehearses the destination's DDL in a transaction that it rolls back: every
  // possible refusal happens here, before anything exists. `fresh`: the stream has no history, and bookkeeping of an
  // earlier stream with the same id does not count. Refuses rules and transformations that do not fit their table, and
  // to create definitions that would run code at the destination that nobody has accepted (called_code.h). Stops tables
  // that have changed at the source (table_identity.h), or fails because of them; leaves out tables that do not exist
  // there, unless that is all of them, or fails with missing_table. Tables with a new name in the stream, or
  // of which the stream wants another name at the destination, get it there.
  base::Result<Assessment> assess(bool fresh);
  // The tables that the publications must publish, under their present names at the source.
  PublishedTables published_tables() const;
  // Notes which relations are about to be copied: after they were published, before the snapshot.
  base::Result<void> identify();
  // Creates missing objects at the destination and records the tables, in one transaction.
  base::Result<void> prepare();
  // Copies the remaining ranges, and builds the indexes of tables that one snapshot has filled. Without initial_copy it
  // only records the snapshot's position. False: tables are left that were truncated or rewritten, or replaced, after
  // the snapshot. Another Instantiation copies them, as after a crash, from a snapshot of their own.
  base::Result<bool> copy(const std::string& snapshot_name, base::Lsn consistent_point);
  // Builds missing indexes and constraints of tables whose copy is consistent: those of one snapshot, and, once every
  // transaction below `applied` is applied, those of several; then foreign keys. Returns the position from which the
  // rest can be done; zero: all done.
  base::Result<base::Lsn> add_constraints(base::Lsn applied);
  base::Result<std::vector<CopiedTable>> copied_tables();
  // Reads the state after a copy, including what others have recorded meanwhile, for progress() alone.
  base::Result<void> show_copied();

  // The position of the youngest snapshot of a stream's copied tables at the destination; zero: nothing is copied.
  static base::Result<base::Lsn> youngest_snapshot(pg::Connection& destination, std::string_view stream_id);
  // Removes the stream's bookkeeping at the destination. The tables stay.
  static base::Result<void> forget(pg::Connection& destination, std::string_view stream_id);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::instantiation
