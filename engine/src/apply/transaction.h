#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "apply/frame_blocks.h"
#include "apply/parked_failure.h"
#include "apply/parked_set.h"
#include "apply/ranges.h"
#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "metadata/source_table.h"
#include "spill/spill_log.h"

// The unit that the reader hands to the coordinator, and the coordinator to the appliers.

namespace thalweg::apply {

// A partition of a table at the source, and the table through which its rows came.
struct WrittenPartition {
  base::RelationId table;
  lcr::PartitionMark mark;
  base::Xid subxid;        // zero: of the top-level transaction
  bool truncated = false;  // that, and nothing was written
};

// A source transaction, complete. Owner: the agent that holds it; the reader makes it, the coordinator destroys it.
struct Transaction {
  base::Lsn commit_lsn;
  base::Lsn end_lsn;  // first byte after the commit record; PROGRESS: the position that it names
  base::UnixMicros commit_time;
  base::Xid xid;
  FrameBuffer frames;                           // row and truncate frames, aborted subtransactions' included
  std::unique_ptr<spill::SpillLog> spilled;     // instead of `frames`, for large ones
  base::Lsn first_lsn;                          // of its first change
  std::chrono::steady_clock::time_point begun;  // its first frame came
  bool streamed = false;                        // came before its commit
  std::unordered_set<uint32_t> aborted;         // subtransactions whose frames do not count; there may be very many
  uint64_t lcrs = 0;                            // those that count
  uint64_t bytes = 0;
  metadata::TransactionTables tables;  // of its frames
  // That it wrote to and that the source named on that occasion; aborted subtransactions' included.
  std::vector<WrittenPartition> partitions = {};
  // Keys that it writes and, of foreign keys and keyless tables, keys that it needs unchanged. Empty for barriers.
  std::vector<uint64_t> writes;
  std::vector<uint64_t> reads;
  // Keys of unique indexes that their columns' bytes do not decide (table_metadata.h): equal hashes may be equal keys.
  std::vector<uint64_t> possible_writes;
  std::vector<uint64_t> table_hashes;       // distinct, as the next two
  std::vector<uint64_t> parent_hashes;      // of the tables that foreign keys of its tables point at
  std::vector<uint64_t> referenced_hashes;  // of its tables: where it makes or removes keys that foreign keys point at
  bool barrier = false;                     // waits for all before it, and all after it wait for it
  bool park_behind = false;                 // shares a row with a parked one: parked too
  int retries = 0;                          // by a policy for its error. Writers: the coordinator, first; the applier
  int retries_most = 0;                     // as that policy says. Writer: the applier
  std::chrono::steady_clock::time_point retry_at = {};  // not before: an earlier apply has put it off
  // The error with which it is parked. Writer: the applier.
  std::optional<base::Error> parked_with;
  ParkedFailure failure;  // of that error. Writer: the applier

  bool empty() const { return lcrs == 0; }
  TransactionHashes hashes() const {
    return {.writes = writes,
            .reads = reads,
            .tables = {.touched = table_hashes, .parents = parent_hashes, .referenced = referenced_hashes},
            .possible_writes = possible_writes};
  }
  bool is_aborted(base::Xid subxid) const { return !aborted.empty() && aborted.contains(subxid.value); }
};

enum class GroupMode : uint8_t {
  together,  // all transactions in one transaction of the destination
  singly,    // after a failure, and where a transaction has to be parked: each by itself, rows in their order
};

enum class GroupState : uint8_t { waiting, running, committed };

// The outcome of a group at the destination.
struct GroupRun {
  size_t done = 0;                               // singly: transactions already committed, also in earlier runs
  std::optional<base::Error> error;              // not committed: again, singly, or the end
  std::optional<std::chrono::seconds> retry_in;  // with an error: again after this long, as a policy says
};

// Consecutive source transactions that commit together. Owner: the coordinator, except for `run`: that belongs to the
// applier from Applier::assign, which clears the last error, until Applier::take_finished, and so do those members of
// the transactions that name the applier as a writer. Meanwhile the coordinator reads none of these, and writes nothing
// but `state`, `retry_at` and `covers_until`, which appliers do not read. So both may read the rest.
struct Group {
  uint64_t number = 0;  // 1, 2, 3 ... in commit order
  std::vector<std::unique_ptr<Transaction>> transactions;
  size_t counted = 0;  // of those that are done, as far as the coordinator has taken note
  uint64_t lcrs = 0;
  uint64_t bytes = 0;
  GroupMode mode = GroupMode::together;
  GroupState state = GroupState::waiting;
  bool barrier = false;
  std::chrono::steady_clock::time_point retry_at;  // not handed out before
  base::Lsn covers_until;      // the low watermark once this and all before it have committed; the coordinator's
  uint64_t after_barrier = 0;  // the part of `after` that later groups inherit
  uint64_t after = 0;          // every group up to this number must have committed
  std::vector<uint64_t> predecessors;
  // Keys, as hashes, that it shares with predecessors: with its other rows it may begin beside them.
  std::vector<uint64_t> contested;
  bool waits_whole = false;  // something else than such keys orders it behind one of them
  GroupRun run;

  // Whether the server is sent all of it at once, where groups of `solo_lcrs` LCRs and more are executed by themselves.
  bool goes_in_one_round_trip(uint64_t solo_lcrs) const {
    return mode == GroupMode::together && lcrs < solo_lcrs && !transactions.front()->spilled;
  }
  base::Lsn end_lsn() const { return transactions.back()->end_lsn; }
  LsnRange range() const { return {.first = transactions.front()->commit_lsn, .end = end_lsn()}; }
};

}  // namespace thalweg::apply
