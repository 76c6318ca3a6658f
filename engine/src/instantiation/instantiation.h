#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "instantiation/called_code.h"
#include "instantiation/progress.h"
#include "instantiation/table_name.h"
#include "pg/connection.h"
#include "pg/publication_names.h"

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
  bool stops_tables = false;         // a table's trouble stops the table; else assess() fails with table_trouble
  int copy_workers = 2;
  int64_t copy_range_rows = 500'000;
  int64_t copy_index_memory_mb = 256;  // of each worker, unless the destination gives it more
  bool initial_copy = true;
  pg::SessionBoard* board = nullptr;  // for its sessions on both sides; it outlives the instantiation
};

// Between copied_from and copied_to a change may or may not be in the copy already; equal where one snapshot had all.
struct CopiedTable {
  TableName table;        // at the destination
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

// Owner: one thread. progress() may be read by anybody through the Progress given.
//
// Order of calls:  assess();  [publication]  identify();  [slot and snapshot]  prepare();  copy(snapshot);
// add_constraints(applied);  copied_tables().
class Instantiation {
 public:
  // `progress` and `stop` outlive it. Setting `stop` ends copy() early with engine_stopping, and has its own sessions
  // given up, whatever they wait for.
  Instantiation(InstantiationOptions options, Progress& progress, const std::atomic<bool>& stop);
  ~Instantiation();
  Instantiation(const Instantiation&) = delete;
  Instantiation& operator=(const Instantiation&) = delete;

  // Opens both sides. assess() does it where it has not been done; another thread may do it before.
  base::Result<void> connect();
  // Reads both sides, checks every table and rehearses the destination's DDL in a transaction that it rolls
  // back: whatever can be refused is refused here, before anything exists. `fresh`: the stream has no history; what an
  // earlier stream of the same id left in the bookkeeping does not count. Definitions that would run code at the
  // destination which nobody has accepted are refused whenever something is to be made of them (called_code.h).
  // Tables that are not what they were at the source (table_identity.h) are stopped, or fail it; those that bear a new
  // name in the stream, too, get it at the destination.
  base::Result<Assessment> assess(bool fresh);
  // What the publications have to publish, as it is called at the source now.
  PublishedTables published_tables() const;
  // Notes which relations are about to be copied: after they were published, before the snapshot.
  base::Result<void> identify();
  // Creates what is missing at the destination and records the tables, in one transaction.
  base::Result<void> prepare();
  // Copies what has not been copied, and builds the indexes of tables that one snapshot has filled. Without
  // initial_copy it records the snapshot's position only.
  base::Result<void> copy(const std::string& snapshot_name, base::Lsn consistent_point);
  // What indexes and constraints are missing of tables whose copy is consistent: those of one snapshot, and, once every
  // transaction below `applied` is applied, those of several; then foreign keys. Returns the position from which the
  // rest can be done; zero: all done.
  base::Result<base::Lsn> add_constraints(base::Lsn applied);
  base::Result<std::vector<CopiedTable>> copied_tables();
  // After a copy, whatever others have recorded of it meanwhile: for progress() alone.
  base::Result<void> show_copied();

  // Of what is copied of a stream's tables at the destination, the position of the youngest snapshot; zero: nothing is.
  static base::Result<base::Lsn> youngest_snapshot(pg::Connection& destination, std::string_view stream_id);
  // Removes the stream's bookkeeping at the destination. The tables stay.
  static base::Result<void> forget(pg::Connection& destination, std::string_view stream_id);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::instantiation
