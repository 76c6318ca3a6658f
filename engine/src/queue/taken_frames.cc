#include "queue/taken_frames.h"

#include <algorithm>

namespace thalweg::queue {

using lcr::FrameKind;

void TakenFrames::follow(const BacklogLedger& log) {
  *this = {};
  in_whole_ = !log.is_between_transactions();
  for (const auto& [xid, segment] : log.streamed()) open_.insert(xid);
  committed_ = position_ = log.position();
  tables_ = log.tables();
}

void TakenFrames::note(const lcr::FrameView& frame) {
  switch (frame.kind()) {
    case FrameKind::table: {
      const auto bytes = frame.bytes();
      tables_[frame.relation().value].assign(bytes.begin(), bytes.end());
      return;
    }
    case FrameKind::begin:
      in_whole_ = true;
      return;
    case FrameKind::commit: {
      const lcr::TransactionMark mark = frame.transaction_mark();
      committed_ = std::max({committed_, mark.end_lsn, base::Lsn{mark.commit_lsn.value + 1}});
      position_ = std::max(position_, committed_);
      if (!frame.has(lcr::kStreamed)) in_whole_ = false;
      break;
    }
    case FrameKind::abort:
      if (frame.subxid() && frame.subxid() != frame.xid()) return;
      break;
    case FrameKind::progress:
      position_ = std::max(position_, frame.lsn());
      return;
    default:
      last_open_ = frame.xid().value;
      open_.insert(last_open_);
      return;
  }
  // A commit, or a rollback.
  open_.erase(frame.xid().value);
  if (last_open_ == frame.xid().value) last_open_ = 0;
}

}  // namespace thalweg::queue
