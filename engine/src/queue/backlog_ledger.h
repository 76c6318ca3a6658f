#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "lcr/frame.h"

namespace thalweg::queue {

// Facts about a backlog's frames by which its log can be cut from the front: the segments that hold changes of each
// transaction, and the table descriptions that a reader which begins later needs.
// Owner: one thread, or a lock of its owner's.
class BacklogLedger {
 public:
  BacklogLedger() = default;
  // A ledger from `position` on: all that commits below has gone another way, which knows these tables.
  BacklogLedger(base::Lsn position, std::map<uint32_t, std::vector<std::byte>> tables)
      : position_(position), tables_(std::move(tables)) {}
  // `frame` was appended to segment `segment`.
  void appended(const lcr::FrameView& frame, uint32_t segment);
  // A segment may end here: outside a transaction that comes whole.
  bool is_between_transactions() const { return !in_whole_; }
  // The position below which all commits have been appended; zero: nothing is known yet.
  base::Lsn position() const { return position_; }
  // The latest description of each table, for the beginning of a segment.
  const std::map<uint32_t, std::vector<std::byte>>& tables() const { return tables_; }
  // Transactions that came in pieces and have not ended, with the segments of their first pieces.
  const std::map<uint32_t, uint32_t>& streamed() const { return streamed_; }
  // The first segment that has something of a transaction that commits at or above `durable`, or of an open one; at
  // most `last`.
  uint32_t first_needed(base::Lsn durable, uint32_t last);

 private:
  void need(uint32_t first, uint32_t last, base::Lsn until);

  struct Needed {
    uint32_t segment;
    base::Lsn until;  // not needed once everything that commits below is durable
  };
  bool in_whole_ = false;
  base::Lsn position_;
  std::deque<Needed> needed_;                          // by segment
  std::map<uint32_t, uint32_t> streamed_;              // open transaction -> the segment of its first piece
  std::map<uint32_t, std::vector<std::byte>> tables_;  // by relation
};

}  // namespace thalweg::queue
