#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// Every threshold of the schedule and of what it is told, with its unit and its reason.

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

  // A group that could run waits for company (group_hold.h) for this part of the delay that its oldest transaction
  // already has. Larger groups are cheaper, and the wait is a small part of that delay: a path that keeps up hardly
  // waits, and one that falls behind gets cheaper.
  int hold_part = 10;
  // At least this long while other groups run: small groups side by side only get in each other's way, and while one
  // runs, which takes a fraction of a millisecond, the next gathers.
  std::chrono::microseconds hold_min{500};
  // At most this long while other groups run.
  std::chrono::microseconds hold_max{2'000};
  // At most this long in a steady flow, in which full groups are worth more than the time of a single change.
  std::chrono::microseconds flow_hold_max{100'000};
  // LCRs a millisecond that are a steady flow (FlowMeter): more than `make bench SCENARIO=latency` offers, which must
  // not be held.
  uint64_t flow_lcrs_per_ms = 60;
  // The time over which the flow is measured: a burst of large transactions is none.
  std::chrono::milliseconds flow_window{20};

  // LCRs that a group needs to begin beside its predecessors: a smaller one goes in one round trip once it may.
  uint64_t beside_lcrs_min = 16;
  // The same where group_size makes all groups small.
  uint64_t beside_lcrs_floor = 4;
  // Groups that run beside their predecessors at a time: more get in each other's way.
  int beside_max = 1;
  // Without groups beside others, after one was refused: what stood between them may stay, as an ALTER TABLE does.
  std::chrono::seconds beside_rest{10};

  // LCRs from which on a group is executed by itself (SoloRun): merging its rows pays. With fewer it goes to the server
  // in one round trip, and so behind another one (RoundTrips).
  uint64_t solo_lcrs_min = 16;
  // The same with the data layer, which takes most rows as they are.
  uint64_t solo_lcrs_min_below_sql = 100;
  // Bytes that the thread which assigns a group still sends itself: a socket takes them while the server is at
  // something else.
  uint64_t assigner_bytes_max = 16 * 1024;
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
  // The longest sleep of the coordinator's thread while something comes: then no thread with news has to wake it for a
  // group that is held.
  std::chrono::milliseconds others_come_wait{5};
  // LCRs that may wait while a thread with news does the coordinator's work: more are a backlog, and that thread has
  // other work.
  uint64_t news_lcrs_max = 500;
};

}  // namespace thalweg::apply
