#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "apply/frame_blocks.h"
#include "apply/reader/table_writer.h"
#include "apply/reader/write_set.h"
#include "apply/shared_state.h"
#include "apply/transaction.h"
#include "spill/spill_space.h"
#include "telemetry/agent.h"
#include "telemetry/transaction_sample.h"

// Puts the queue's interleaved frames together to transactions.

namespace thalweg::apply {

// Owner: the reader.
class Assembler {
 public:
  struct Counters {
    telemetry::Counter aborted_transactions, spilled_lcrs, spilled_transactions, spilled_bytes;
    telemetry::Counter open_transactions;  // a gauge: Counter::set
  };
  // `await_space`: called when the spill has no space left; waits a little, true to try again. Disk time counts in
  // `time`.
  Assembler(SharedState& shared, BlockPool& pool, spill::SpillSpace& spill, telemetry::TimeAccount& time,
            TableWriter& tables, Counters& counters, std::function<bool()> await_space);
  ~Assembler();

  // A row, truncate, partition, begin, commit or abort frame. COMMIT gives the transaction, hashed and ready.
  // `spill_above`: LCRs. `is_applied`: of a COMMIT, that the destination has it, whose tables may be others by now; so
  // it is not hashed. Fails with corrupt_frame, a file's error, or as TableWriter::find.
  base::Result<std::unique_ptr<Transaction>> add(const lcr::FrameView& frame, size_t spill_above,
                                                 bool is_applied = false);
  // Whether add() of this frame is a moment's work: of a transaction of at most `frames_max` frames, in memory, whose
  // tables the metadata cache has. Neither a disk nor the destination is waited for.
  bool takes_at_once(const lcr::FrameView& frame, uint64_t frames_max) const;
  // Whether there are transactions whose commit or abort has not come.
  bool any_open() const { return whole_.transaction != nullptr || !streamed_.empty(); }
  // Memory of open transactions, in whole blocks: it comes back by spilling them, not by waiting.
  size_t open_bytes() const;
  // Moves the largest open transaction to disk. False when there is none worth it.
  base::Result<bool> spill_largest();
  // Moves every open transaction to disk of which something has been in memory since before `then`.
  base::Result<void> spill_begun_before(std::chrono::steady_clock::time_point then);
  // Whether the frame that came last went to disk.
  bool is_spilling() const { return spilling_; }
  // Segments of open transactions: only their commit or abort gives them back.
  uint64_t open_disk_bytes() const;
  // Transactions whose commit or abort has not come: all of them count, the oldest and largest are shown.
  telemetry::TransactionSamples sample() const;
  // Nothing comes at present: gives the block up that is being filled, unless transactions that wait hold it anyway.
  // With a new one after each rest, a few bytes each would hold a lot of memory.
  void rest();
  // Gives it up in any case, so that its memory can come back.
  void drop_fill();

 private:
  struct Open {
    std::unique_ptr<Transaction> transaction;
    Block* fill = nullptr;  // streamed transactions fill blocks of their own
    uint64_t frames = 0;
    bool streamed = false;
    base::RelationId last_relation;           // whose row came last
    std::vector<base::RelationId> relations;  // the first kTablesShownMax that had rows
    // Of a spilled one: a table that cannot be written. Its COMMIT says whether the destination has it all the same.
    std::optional<base::Error> trouble;
  };
  static void note(Open& open, const lcr::FrameView& frame);
  void show(const Open& open, std::vector<telemetry::TransactionSample>& out) const;
  // The open transaction that a frame belongs to; a streamed one begins with its first.
  Open& open_of(const lcr::FrameView& frame);
  base::Result<void> append(Open& open, const lcr::FrameView& frame, size_t spill_above);
  base::Result<void> spill(Open& open);
  base::Result<void> append_spilled(Open& open, const lcr::FrameView& frame);
  base::Result<void> note_table(Open& open, const lcr::FrameView& frame);
  base::Result<void> with_space(const std::function<base::Result<void>()>& write);
  base::Result<void> finish_spill(Open& open);
  base::Result<std::unique_ptr<Transaction>> finish(const lcr::FrameView& frame, bool is_applied);
  void abort(const lcr::FrameView& frame);
  void drop_fill(Open& open);

  SharedState& shared_;
  BlockPool& pool_;
  spill::SpillSpace& spill_;
  telemetry::TimeAccount& time_;
  Counters& counters_;
  const std::function<bool()> await_space_;
  bool spilling_ = false;
  const TableWriter& tables_;
  WriteSetBuilder write_sets_;
  Block* fill_ = nullptr;  // shared by transactions that come whole, one after the other
  Open whole_;             // between BEGIN and COMMIT
  std::unordered_map<base::Xid, Open> streamed_;
};

}  // namespace thalweg::apply
