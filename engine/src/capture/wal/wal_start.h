#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/wal/wal_folder.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

// The one-time beginning of a stream whose source's WAL is mined.

namespace thalweg::capture {

struct WalStartOptions {
  base::Conninfo source;
  pg::ConnectOptions session;
  std::string slot;       // physical; an error if it is there
  std::string copy_slot;  // temporary: its snapshot is that of the first contents and of the copy
  std::vector<std::string> publications;
  std::filesystem::path folder;  // of the stream's mining; what an earlier beginning has left there goes
};

struct WalStart {
  pg::ReplicationStream stream;  // holds the snapshot: importable until the next command on it or its end
  pg::CreatedSlot slot;          // what commits from its position on is mined
  pg::SystemIdentity identity;
};

// Makes the slot, which keeps WAL from a redo pointer on, and reads the first contents in a snapshot behind it. Waits
// for the transactions that run at the source, unless `session` gives up. Fails as check_source() and MinedTables do,
// and with unsupported_table where a column cannot be mined.
base::Result<WalStart> start_wal(const WalStartOptions& options);

struct GoingOn {
  MiningState state;
  // Position that had been confirmed. Transactions that commit before it are mined again, for a destination that was
  // restored to an earlier state; zero: none is.
  base::Lsn again_until = {};
};

// Where what was mined goes on from `from`, where it is one, also if that takes WAL that is only kept. Fails with
// source_changed, or position_gap, also where nothing is left of it. Of a source that has left the timeline, as of
// before it did; source_diverged where that is not to be had.
base::Result<GoingOn> check_mining(WalFolder& folder, const shipment::WalIdentity& source, base::Lsn from);

// Whether mining could begin again at `from`, as far as the folder tells while somebody else mines: position_gap, which
// says how far back the WAL is kept.
base::Result<void> check_kept(const std::filesystem::path& folder, base::Lsn from);

}  // namespace thalweg::capture
