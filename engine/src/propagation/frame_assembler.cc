#include "propagation/frame_assembler.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "lcr/frame.h"

namespace thalweg::propagation {

base::Result<void> FrameAssembler::feed(std::span<const std::byte>& bytes, std::chrono::microseconds timeout) {
  assert(bytes.size() % lcr::kFrameAlignment == 0);
  while (!bytes.empty()) {
    if (filled_ == 0) {
      THALWEG_ASSIGN(const size_t length, lcr::frame_length(bytes));
      frame_ = queue_.reserve(length, timeout);
      if (frame_.empty()) return {};
      timeout = {};
    }
    const size_t taken = std::min(frame_.size() - filled_, bytes.size());
    std::memcpy(frame_.data() + filled_, bytes.data(), taken);
    filled_ += taken;
    bytes = bytes.subspan(taken);
    if (filled_ == frame_.size()) THALWEG_TRY(publish());
  }
  return {};
}

base::Result<void> FrameAssembler::publish() {
  filled_ = 0;
  THALWEG_ASSIGN(const auto frame, lcr::FrameView::decode(frame_));
  if (lcr::is_change(frame.kind())) ++lcrs_;
  if (frame.kind() == lcr::FrameKind::commit) {
    last_commit_ = frame.transaction_mark().commit_time;
    if (begun_) marker_ = frame.transaction_mark();
  }
  if (frame.kind() != lcr::FrameKind::origin) begun_ = frame.kind() == lcr::FrameKind::begin;
  bytes_ += frame_.size();
  queue_.enqueue();
  return {};
}

}  // namespace thalweg::propagation
