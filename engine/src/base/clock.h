#pragma once

#include <chrono>

#include "base/ids.h"

// Time comes in through constructors, so that tests decide what time it is.

namespace thalweg::base {

// Thread-safe: implementations may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall clock, for what is shown or compared with a database's time. It may jump.
  virtual UnixMicros unix_now() const = 0;
  // Monotonic, for durations and time-outs.
  virtual std::chrono::steady_clock::time_point steady_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  UnixMicros unix_now() const override {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
  }
  std::chrono::steady_clock::time_point steady_now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace thalweg::base
