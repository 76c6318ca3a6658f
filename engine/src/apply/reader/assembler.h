#pragma once

#include <filesystem>
#include <memory>
#include <unordered_map>

#include "apply/frame_blocks.h"
#include "apply/reader/write_set.h"
#include "apply/shared_state.h"
#include "apply/transaction.h"
#include "telemetry/agent.h"

// Puts the queue's interleaved frames together to transactions.

namespace thalweg::apply {

// Owner: the reader.
class Assembler {
 public:
  struct Counters {
    telemetry::Counter aborted_transactions, spilled_lcrs, spilled_transactions, spilled_bytes;
    telemetry::Counter open_transactions;  // a gauge
  };
  Assembler(SharedState& shared, BlockPool& pool, std::filesystem::path spill_directory, Counters& counters);
  ~Assembler();

  // A row, truncate, begin, commit or abort frame. COMMIT gives the transaction, hashed and ready.
  // `tables`: what has been described so far. `spill_above`: LCRs. Fails with corrupt_frame or a file's error.
  base::Result<std::unique_ptr<Transaction>> add(const lcr::FrameView& frame,
                                                 const std::shared_ptr<const metadata::TableMap>& tables,
                                                 size_t spill_above);
  // Memory of open transactions, in whole blocks: it comes back by spilling them, not by waiting.
  size_t open_bytes() const;
  // Moves the largest open transaction to disk. False when there is none worth it.
  base::Result<bool> spill_largest();
  // Gives the block up that is being filled, so that its memory can come back.
  void rest();

 private:
  struct Open {
    std::unique_ptr<Transaction> transaction;
    Block* fill = nullptr;  // streamed transactions fill blocks of their own
    uint64_t frames = 0;
    bool streamed = false;
  };
  base::Result<void> append(Open& open, const lcr::FrameView& frame, const metadata::TableMap& tables,
                            size_t spill_above);
  base::Result<void> spill(Open& open, const metadata::TableMap* tables);
  base::Result<void> append_spilled(Open& open, const lcr::FrameView& frame);
  base::Result<std::unique_ptr<Transaction>> finish(const lcr::FrameView& frame,
                                                    const std::shared_ptr<const metadata::TableMap>& tables);
  void abort(const lcr::FrameView& frame);
  void drop_fill(Open& open);

  SharedState& shared_;
  BlockPool& pool_;
  const std::filesystem::path spill_directory_;
  Counters& counters_;
  WriteSetBuilder write_sets_;
  Block* fill_ = nullptr;  // shared by transactions that come whole, one after the other
  Open whole_;             // between BEGIN and COMMIT
  std::unordered_map<base::Xid, Open> streamed_;
  std::shared_ptr<const metadata::TableMap> tables_;
};

}  // namespace thalweg::apply
