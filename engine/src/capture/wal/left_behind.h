#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/wal/mined_tables.h"
#include "capture/wal/wal_folder.h"
#include "shipment/wal_identity.h"

// Transactions of the stream that a promoted server lacks: they were committed on the timeline that it has left, behind
// the position at which it did, and their WAL was staged.

namespace thalweg::capture {

struct LeftTransaction {
  base::Xid xid = {};
  base::Lsn commit = {};
  std::set<std::string> tables = {};
};

struct LeftBehind {
  int timeline = 0;  // that was left
  base::Lsn end = {};
  base::Lsn until = {};                            // the WAL was staged up to there
  std::vector<LeftTransaction> transactions = {};  // in the order of their commits
};

// Mines what is staged behind the end of a timeline that the source has left, and keeps the answer in the folder: the
// capture that goes on cuts it off. Nothing is done where the source has not left the timeline of what is staged, or
// what it takes to go back so far is gone.
base::Result<void> note_left_behind(WalFolder& folder, const shipment::WalIdentity& source, const MinedTables& tables,
                                    uint64_t memory_bytes);

// The note of that timeline and end; none: there is none.
base::Result<std::optional<LeftBehind>> find_left_behind(const WalFolder& folder, int timeline, base::Lsn end);

// Success: nobody who has got up to `reached` has a transaction of them. Else source_diverged, which names those before
// `reached`, or says that nobody knows.
base::Result<void> check_left_behind(const LeftBehind& left, base::Lsn reached);

}  // namespace thalweg::capture
