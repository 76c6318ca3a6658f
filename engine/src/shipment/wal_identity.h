#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/ids.h"
#include "pg/timeline_history.h"
#include "shipment/segment_name.h"

namespace thalweg::shipment {

// The server whose WAL it is, where it comes from, and how that is cut into files.
struct WalIdentity {
  uint64_t system_identifier = 0;
  pg::TimelineHistory history{0};  // of timeline 0: not known yet
  uint32_t segment_bytes = 16U << 20;

  bool is_known() const { return history.timeline() != 0; }
  base::Lsn segment_of(base::Lsn lsn) const { return {lsn.value - lsn.value % segment_bytes}; }
  // The timeline under which the server has a segment. One in which it went over to another is there, whole, under the
  // later one's name: a promotion begins it with a copy of what was before.
  uint32_t timeline_of(base::Lsn segment) const {
    return static_cast<uint32_t>(history.at({segment.value + segment_bytes - 1}));
  }
  std::string name_of(base::Lsn segment) const {
    return SegmentName{.timeline = timeline_of(segment), .begin = segment}.text(segment_bytes);
  }
  // For wal::WalReaderOptions.
  std::function<uint32_t(base::Lsn)> timeline_at() const {
    return [history = history](base::Lsn lsn) { return static_cast<uint32_t>(history.at(lsn)); };
  }

  bool operator==(const WalIdentity&) const = default;
};

}  // namespace thalweg::shipment
