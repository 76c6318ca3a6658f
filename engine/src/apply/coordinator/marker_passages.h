#pragma once

#include <deque>

#include "apply/transaction.h"
#include "telemetry/marker_log.h"
#include "telemetry/sample.h"

namespace thalweg::apply {

// When markers, transactions without changes, passed the coordinator: dispatched when they come, committed once
// everything before them has. Owner: the holder of the coordinator's baton; the logs and the latency belong to anybody.
class MarkerPassages {
 public:
  void dispatched(const Transaction& marker, base::UnixMicros now);
  // Notes that everything that ends at or before `low_watermark` has committed.
  void committed(base::Lsn low_watermark, base::UnixMicros now);

  const telemetry::MarkerLog& dispatches() const { return dispatches_; }
  const telemetry::MarkerLog& commits() const { return commits_; }
  // The time from a marker's commit at the source until everything before it had committed here.
  const telemetry::LatencyHistogram& latency() const { return latency_; }

 private:
  struct Marker {
    base::Lsn commit_lsn;
    base::Lsn end_lsn;
    base::UnixMicros commit_time;
  };
  std::deque<Marker> open_;  // kMarkersMax at most
  telemetry::MarkerLog dispatches_;
  telemetry::MarkerLog commits_;
  telemetry::LatencyHistogram latency_;
};

}  // namespace thalweg::apply
