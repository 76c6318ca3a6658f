#include "apply/coordinator/marker_passages.h"

#include <algorithm>
#include <chrono>

namespace thalweg::apply {

namespace {

constexpr size_t kMarkersMax = 1024;  // that wait; further ones are noted as dispatched only

}  // namespace

void MarkerPassages::dispatched(const Transaction& marker, base::UnixMicros now) {
  dispatches_.note({marker.commit_lsn, marker.commit_time, now});
  if (open_.size() < kMarkersMax) open_.push_back({marker.commit_lsn, marker.end_lsn, marker.commit_time});
}

void MarkerPassages::committed(base::Lsn low_watermark, base::UnixMicros now) {
  while (!open_.empty() && open_.front().end_lsn <= low_watermark) {
    const Marker& marker = open_.front();
    commits_.note({marker.commit_lsn, marker.commit_time, now});
    latency_.record(std::chrono::microseconds(std::max<int64_t>(0, now.value - marker.commit_time.value)));
    open_.pop_front();
  }
}

}  // namespace thalweg::apply
