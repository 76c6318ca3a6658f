#pragma once

#include <chrono>
#include <cstdint>

namespace thalweg::apply {

// Whether LCRs come in a steady flow: at least kLcrsPerMs over the last kWindow. Owner: the holder of the coordinator's
// baton.
class FlowMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kLcrsPerMs = 60;
  static constexpr std::chrono::milliseconds kWindow{20};

  // `lcrs`: that have come since the beginning.
  void measure(uint64_t lcrs, Clock::time_point now) {
    const auto elapsed = now - since_;
    if (elapsed < kWindow) return;
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
    steady_ = lcrs - lcrs_ >= kLcrsPerMs * static_cast<uint64_t>(millis);
    since_ = now;
    lcrs_ = lcrs;
  }
  bool steady() const { return steady_; }

 private:
  Clock::time_point since_;
  uint64_t lcrs_ = 0;
  bool steady_ = false;
};

}  // namespace thalweg::apply
