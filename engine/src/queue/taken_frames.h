#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/ids.h"
#include "lcr/frame.h"
#include "queue/backlog_ledger.h"

namespace thalweg::queue {

// The frames that an agent has taken from memory, as far as its successor needs them: the positions where no
// transaction is open, and the tables' descriptions, which come only once.
// Owner: one thread.
class TakenFrames {
 public:
  void took(const lcr::FrameView& frame) {
    // The hot path: a change of a transaction that is known already tells nothing new.
    if (lcr::is_change(frame.kind()) && (in_whole_ || frame.xid().value == last_open_)) return;
    note(frame);
  }
  // Goes on behind the last frame of a log.
  void follow(const BacklogLedger& log);

  bool is_between_transactions() const { return !in_whole_ && open_.empty(); }
  base::Lsn committed() const { return committed_; }  // every transaction that was taken commits below
  base::Lsn position() const { return position_; }    // everything that commits below was taken
  const std::map<uint32_t, std::vector<std::byte>>& tables() const { return tables_; }

 private:
  void note(const lcr::FrameView& frame);

  bool in_whole_ = false;
  uint32_t last_open_ = 0;  // the open transaction whose change came last; zero: none
  std::set<uint32_t> open_;
  base::Lsn committed_, position_;
  std::map<uint32_t, std::vector<std::byte>> tables_;  // by relation
};

}  // namespace thalweg::queue
