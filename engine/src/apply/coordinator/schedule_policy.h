#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// Every threshold of the schedule, with its unit and its reason.

namespace thalweg::apply {

// Immutable. docs/decisions/groups.md and groups-beside.md have the measurements.
struct SchedulePolicy {
  // Groups in the window for each applier: how far commits may run ahead of the low watermark, and so how much is
  // executed again after a crash.
  size_t window_groups_per_applier = 8;
  // Groups that may wait besides one for each applier: enough that an applier which becomes idle finds one.
  size_t waiting_groups_over = 2;
  // Bytes beyond which a group does not grow; a single transaction may be larger. Bounds what one failure repeats.
  uint64_t group_bytes_max = 16 * 1024 * 1024;

  // LCRs that a group needs to begin beside its predecessors: a smaller one goes in one round trip once it may.
  uint64_t beside_lcrs_min = 16;
  // The same where group_size makes all groups small.
  uint64_t beside_lcrs_floor = 4;
  // Groups that run beside their predecessors at a time: more get in each other's way.
  int beside_max = 1;
  // Without groups beside others, after one was refused: what stood between them may stay, as an ALTER TABLE does.
  std::chrono::seconds beside_rest{10};

  // LCRs of a group that goes to the server in one round trip, and so behind another.
  uint64_t behind_lcrs_max = 100;
  // Nothing goes behind a group that has run for longer: it may wait for somebody's lock.
  std::chrono::milliseconds behind_wait{1};

  // The longest sleep while a group is held and no other runs: the hold must end on time.
  std::chrono::microseconds held_wait_max{1000};
  // The longest sleep while a group is held and others run: their end wakes the coordinator anyway.
  std::chrono::milliseconds others_run_wait{5};
  // Between two looks for deadlocks of the commit order (CommitOrderWatch), and so the longest sleep meanwhile.
  std::chrono::milliseconds watch_pause{20};
  // The longest sleep otherwise.
  std::chrono::milliseconds idle_wait{100};
};

}  // namespace thalweg::apply
