#pragma once

#include <chrono>
#include <cstdint>

#include "apply/coordinator/schedule_policy.h"

namespace thalweg::apply {

// Whether LCRs come in a steady flow: the policy's LCRs a millisecond over its last window. Owner: the holder of the
// coordinator's baton.
class FlowMeter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit FlowMeter(const SchedulePolicy& policy)
      : lcrs_per_ms_(policy.flow_lcrs_per_ms), window_(policy.flow_window) {}

  // `lcrs`: that have come since the beginning.
  void measure(uint64_t lcrs, Clock::time_point now) {
    const auto elapsed = now - since_;
    if (elapsed < window_) return;
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
    steady_ = lcrs - lcrs_ >= lcrs_per_ms_ * static_cast<uint64_t>(millis);
    since_ = now;
    lcrs_ = lcrs;
  }
  bool steady() const { return steady_; }

 private:
  const uint64_t lcrs_per_ms_;
  const std::chrono::milliseconds window_;
  Clock::time_point since_;
  uint64_t lcrs_ = 0;
  bool steady_ = false;
};

}  // namespace thalweg::apply
