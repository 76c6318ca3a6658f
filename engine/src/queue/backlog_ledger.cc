#include "queue/backlog_ledger.h"

#include <algorithm>

namespace thalweg::queue {

using lcr::FrameKind;

void BacklogLedger::appended(const lcr::FrameView& frame, uint32_t segment) {
  switch (frame.kind()) {
    case FrameKind::table: {
      const auto bytes = frame.bytes();
      tables_[frame.relation().value].assign(bytes.begin(), bytes.end());
      break;
    }
    case FrameKind::begin:
      in_whole_ = true;
      break;
    case FrameKind::commit: {
      const lcr::TransactionMark mark = frame.transaction_mark();
      const base::Lsn end = std::max(mark.end_lsn, base::Lsn{mark.commit_lsn.value + 1});
      uint32_t first = segment;
      if (const auto open = streamed_.extract(frame.xid().value); frame.has(lcr::kStreamed) && !open.empty()) {
        first = open.mapped();
      }
      need(first, segment, end);
      if (!frame.has(lcr::kStreamed)) in_whole_ = false;
      position_ = std::max(position_, end);
      break;
    }
    case FrameKind::abort:
      if (!frame.subxid() || frame.subxid() == frame.xid()) streamed_.erase(frame.xid().value);
      break;
    case FrameKind::progress:
      position_ = std::max(position_, frame.lsn());
      break;
    default:
      if (!in_whole_) streamed_.try_emplace(frame.xid().value, segment);
  }
}

void BacklogLedger::need(uint32_t first, uint32_t last, base::Lsn until) {
  for (uint32_t segment = needed_.empty() ? first : needed_.back().segment + 1; segment <= last; ++segment) {
    needed_.push_back({.segment = segment, .until = {}});
  }
  // A streamed transaction may have begun in a segment in which none has committed.
  while (needed_.front().segment > first) needed_.push_front({.segment = needed_.front().segment - 1, .until = {}});
  for (Needed& needed : needed_) {
    if (needed.segment >= first && needed.segment <= last) needed.until = std::max(needed.until, until);
  }
}

uint32_t BacklogLedger::first_needed(base::Lsn durable, uint32_t last) {
  uint32_t open = last;
  for (const auto& [xid, segment] : streamed_) open = std::min(open, segment);
  while (!needed_.empty() && needed_.front().segment < open && needed_.front().until <= durable) needed_.pop_front();
  return needed_.empty() ? open : std::min(open, needed_.front().segment);
}

}  // namespace thalweg::queue
