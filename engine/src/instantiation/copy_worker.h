#pragma once

#include <atomic>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "instantiation/progress.h"
#include "instantiation/work_queue.h"
#include "pg/connection.h"

// One of the workers that copy ranges and build what comes after them.

namespace thalweg::instantiation {

struct Snapshot {
  std::string name;            // exported; importable while its session stays as it is
  base::Lsn consistent_point;  // holds exactly what committed before it
};

struct CopyOptions {
  std::string stream_id;
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  int workers = 1;
  int64_t index_memory_mb = 64;
  pg::SessionBoard* board = nullptr;
  std::string mask_key = {};  // of masks that the source computes; empty: none needs it
};

// The application name of every worker's sessions, on both sides.
std::string copy_application_name(const std::string& stream_id);

// engine_stopping.
std::unexpected<base::Error> interrupted();

// Owner: one thread at a time.
class CopyWorker {
 public:
  // Once one is set, whatever waits for that side is given up within seconds. At the destination that is for what
  // cannot be cancelled: an index goes on being built for as long as nobody tells the server.
  CopyWorker(const CopyOptions& options, Progress& progress, const std::atomic<bool>& abandon_source,
             const std::atomic<bool>& abandon_destination)
      : options_(options),
        progress_(progress),
        abandon_source_(abandon_source),
        abandon_destination_(abandon_destination) {}

  base::Result<void> open_destination();
  base::Result<void> open_source(const Snapshot& snapshot);
  // Its session within the snapshot; there is none before open_source().
  pg::Connection& source() { return *source_; }
  // Lets the source's snapshot go: the source keeps row versions for it.
  void close_source() { source_.reset(); }
  // Cancellers of its sessions, on both sides.
  std::vector<pg::Connection::Canceller> cancellers() const;

  // `stop` ends it early with engine_stopping, between two rows; one that waits has to be cancelled. False: nothing is
  // copied, for the snapshot is too old to show the table.
  base::Result<bool> copy(const CopyTable& table, const RangeStep& step, const std::atomic<bool>& stop);
  // All or nothing. Where the destination refuses a statement, each runs by itself, and what it refuses is left out
  // with a warning. A primary key is an error: apply needs it.
  base::Result<void> build(const CopyTable& table, const BuildStep& step);

 private:
  class RangeCount;
  // Asks once for each table of a session: the lock that it takes then keeps the answer true.
  base::Result<bool> snapshot_shows(const TableShape& table);
  base::Result<int64_t> stream(const CopyTable& table, const RangeStep& step, RangeCount& count,
                               const std::atomic<bool>& stop);
  base::Result<void> merge(const TableShape& table);
  base::Result<void> build_alone(const Statement& statement);

  const CopyOptions& options_;
  Progress& progress_;
  const std::atomic<bool>& abandon_source_;
  const std::atomic<bool>& abandon_destination_;
  std::optional<pg::Connection> source_;
  std::set<uint32_t> shown_;  // tables, by oid, that its snapshot shows
  std::optional<pg::Connection> destination_;
  base::Lsn snapshot_lsn_;
};

}  // namespace thalweg::instantiation
