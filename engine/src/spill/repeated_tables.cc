#include "spill/repeated_tables.h"

#include <algorithm>

#include "lcr/frame.h"

namespace thalweg::spill {

void RepeatedTables::rewind() { *this = {}; }

void RepeatedTables::begin_segment() {
  at_head_ = true;
  repeated_.clear();
}

std::span<const std::byte> RepeatedTables::leave_out(std::span<const std::byte> run) {
  size_t left_out = 0;
  for (size_t at = 0; at < run.size();) {
    const auto frame = lcr::FrameView::trusted(run.data() + at);
    at += frame.bytes().size();
    if (frame.kind() != lcr::FrameKind::table) {
      at_head_ = false;
      continue;
    }
    const uint32_t relation = frame.relation().value;
    auto& latest = latest_[relation];
    // One that comes a second time here was repeated by the source.
    at_head_ = at_head_ && std::ranges::equal(latest, frame.bytes()) && repeated_.insert(relation).second;
    if (at_head_) {
      left_out = at;
    } else {
      latest.assign(frame.bytes().begin(), frame.bytes().end());
    }
  }
  return run.subspan(left_out);
}

}  // namespace thalweg::spill
