#pragma once

#include <algorithm>
#include <chrono>

namespace thalweg::apply {

// How long a group that could run waits for company (docs/decisions/groups.md). Larger groups are cheaper; what a
// change waits for that is a small part of the delay that it has anyway, so a path that keeps up hardly waits, and one
// that falls behind gets cheaper. Small groups side by side only get in each other's way: while one runs, which takes a
// fraction of a millisecond, the next gathers.
inline constexpr int kHoldPart = 10;
inline constexpr std::chrono::microseconds kGather{500};       // at least, while other groups run
inline constexpr std::chrono::milliseconds kHoldMax{2};        // while other groups run
inline constexpr std::chrono::milliseconds kFlowHoldMax{100};  // in a steady flow

// `delay`: from the commit of the group's oldest transaction until now; negative where the source's clock is ahead.
constexpr std::chrono::microseconds group_hold(std::chrono::microseconds delay, bool others_run, bool in_steady_flow) {
  if (!others_run && !in_steady_flow) return std::chrono::microseconds{0};
  const std::chrono::microseconds most = in_steady_flow ? kFlowHoldMax : kHoldMax;
  return std::clamp(delay / kHoldPart, others_run ? kGather : std::chrono::microseconds{0}, most);
}

}  // namespace thalweg::apply
