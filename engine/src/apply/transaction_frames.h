#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "apply/transaction.h"
#include "base/error.h"
#include "lcr/frame.h"
#include "spill/spill_log.h"

// Walks over a transaction's frames in order, wherever they lie, without those of aborted subtransactions.

namespace thalweg::apply {

// Owner: one thread. The transaction outlives it.
class TransactionFrames {
 public:
  explicit TransactionFrames(const Transaction& transaction) : transaction_(transaction) {}

  // Calls visit(frame) for each frame that counts, until it returns a failed Result; the end of the transaction is
  // success. `chunk_end()` is called where frames before it may be gone afterwards: after every so many bytes of a
  // spilled transaction, never for one in memory.
  template <typename Visit, typename ChunkEnd>
  base::Result<void> for_each(Visit visit, ChunkEnd chunk_end) {
    for (const auto& segment : transaction_.frames.segments()) {
      THALWEG_TRY(walk({segment.begin, segment.end}, visit));
    }
    if (!transaction_.spilled) return {};
    reader_.emplace(transaction_.spilled->read());
    while (true) {
      THALWEG_ASSIGN(const std::span<const std::byte> chunk, next_chunk());
      if (chunk.empty()) return {};
      THALWEG_TRY(walk(chunk, visit));
      THALWEG_TRY(chunk_end());
    }
  }

 private:
  template <typename Visit>
  base::Result<void> walk(std::span<const std::byte> bytes, Visit& visit) {
    while (!bytes.empty()) {
      const auto frame = lcr::FrameView::trusted(bytes.data());
      bytes = bytes.subspan(frame.header().length);
      if (frame.header().subxid != 0 && transaction_.is_aborted(frame.subxid())) continue;
      THALWEG_TRY(visit(frame));
    }
    return {};
  }
  // Whole, checked frames; empty at the end.
  base::Result<std::span<const std::byte>> next_chunk();

  const Transaction& transaction_;
  std::optional<spill::LogReader> reader_;
  std::vector<std::byte> chunk_;
};

}  // namespace thalweg::apply
