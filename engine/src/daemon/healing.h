#pragma once

#include <chrono>
#include <optional>

#include "base/error.h"

namespace thalweg::daemon {

// Whether a retry may succeed without an operator telling the engine. A session of another engine (stream_in_use) is
// the caller's to judge, by InUsePatience.
inline bool heals_by_itself(const base::Error& error) {
  if (base::class_of(error.code) == base::ErrorClass::transient) return true;
  switch (error.code) {
    // These go on once there is space.
    case base::ErrorCode::disk_full:
    case base::ErrorCode::spill_limit_reached:
    // And this once somebody ends it.
    case base::ErrorCode::destination_read_only:
    case base::ErrorCode::source_read_only:
    // The other engine may be given another certificate or version without this one noticing.
    case base::ErrorCode::certificate_rejected:
    case base::ErrorCode::link_protocol_violation:
    case base::ErrorCode::link_version_unsupported:
      return true;
    default:
      return false;
  }
}

// How long a session of another engine is waited for: the server may not have missed yet that its engine was killed.
// Owner: whoever retries.
class InUsePatience {
 public:
  // Asked at each attempt that meets such a session: whether to wait on for it.
  bool lasts() {
    const auto now = std::chrono::steady_clock::now();
    if (!since_) since_ = now;
    return now - *since_ < kMost;
  }
  void reset() { since_.reset(); }

 private:
  static constexpr std::chrono::seconds kMost{60};
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace thalweg::daemon
