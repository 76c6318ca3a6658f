#pragma once

#include <algorithm>
#include <chrono>

#include "base/ids.h"

namespace thalweg::capture {

// When the source hears from us: at once when it asks, soon when more has become durable, and regularly, so that it
// neither gives us up nor keeps WAL that nobody needs. Owner: the capture's agent.
class FeedbackSchedule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  // News of a durable position go out at most this often.
  static constexpr Duration kNewsInterval = std::chrono::milliseconds(100);

  // `interval`: the longest silence.
  FeedbackSchedule(Time now, Duration interval) : interval_(interval), last_(now) {}

  void request() { requested_ = true; }
  // How long until feedback is due; zero or less: now.
  Duration until_due(Time now, base::Lsn confirmed) const {
    if (requested_) return Duration::zero();
    return last_ + (confirmed > confirmed_ ? std::min(kNewsInterval, interval_) : interval_) - now;
  }
  void sent(Time now, base::Lsn confirmed) {
    last_ = now;
    confirmed_ = std::max(confirmed_, confirmed);
    requested_ = false;
  }
  base::Lsn confirmed() const { return confirmed_; }

 private:
  Duration interval_;
  Time last_;
  base::Lsn confirmed_;
  bool requested_ = false;
};

}  // namespace thalweg::capture
