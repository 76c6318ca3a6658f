#pragma once

#include <chrono>

#include "base/error.h"

namespace thalweg::daemon {

inline constexpr std::chrono::seconds kInUsePatience{60};  // a killed engine's session can live on that long

// Whether it goes away without anybody's doing, or by somebody's of which the engine is not told. Another engine's
// session (stream_in_use) is the caller's to judge: it depends on how long it has been there.
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

}  // namespace thalweg::daemon
