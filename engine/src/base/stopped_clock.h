#pragma once

#include <chrono>

#include "base/clock.h"

namespace thalweg::base {

// For tests: time passes when the test says so. Owner: the test; nobody else reads it while `now` changes.
class StoppedClock final : public Clock {
 public:
  UnixMicros unix_now() const override { return {}; }
  std::chrono::steady_clock::time_point steady_now() const override { return now; }

  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
};

}  // namespace thalweg::base
