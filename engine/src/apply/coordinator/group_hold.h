#pragma once

#include <algorithm>
#include <chrono>

#include "apply/coordinator/schedule_policy.h"

namespace thalweg::apply {

// How long a group that could run waits for company (docs/decisions/groups.md). `delay`: from the commit of its oldest
// transaction until now; negative where the source's clock is ahead.
constexpr std::chrono::microseconds group_hold(const SchedulePolicy& policy, std::chrono::microseconds delay,
                                               bool others_run, bool in_steady_flow) {
  if (!others_run && !in_steady_flow) return std::chrono::microseconds{0};
  const std::chrono::microseconds least = others_run ? policy.hold_min : std::chrono::microseconds{0};
  return std::clamp(delay / policy.hold_part, least, in_steady_flow ? policy.flow_hold_max : policy.hold_max);
}

}  // namespace thalweg::apply
