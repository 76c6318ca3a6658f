#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// The thresholds that decide which transactions go together, which group runs when and beside which, how it is sent,
// which thread does the work, and how long the coordinator and the appliers sleep: each with its unit and its reason.
//
// Not here: what only bounds a queue or memory (README.md, "Bounds"), the duty cycles of reader and recorder, and the
// two lanes of an applier (ApplierParts::kLanes), which are places in the code rather than a number.

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
  // The longest hold while other groups run.
  std::chrono::microseconds hold_max{2'000};
  // The longest hold in a steady flow, in which full groups are worth more than the time of a single change.
  std::chrono::microseconds flow_hold_max{100'000};
  // LCRs a millisecond that are a steady flow (FlowMeter): more than `make bench SCENARIO=latency` offers, which must
  // not be held.
  uint64_t flow_lcrs_per_ms = 60;
  // The time over which the flow is measured: a burst of large transactions is none.
  std::chrono::milliseconds flow_window{20};

  // LCRs that a group needs to begin beside its predecessors: a smaller one goes in one round trip once it may.
  uint64_t beside_lcrs_min = 16;
  // LCRs that it needs where group_size makes all groups small.
  uint64_t beside_lcrs_floor = 4;
  // Groups that run beside their predecessors at a time: more get in each other's way.
  int beside_max = 1;
  // Without groups beside others, after one was refused: what stood between them may stay, as an ALTER TABLE does.
  std::chrono::seconds beside_pause{10};
  // A group that has waited so long for the groups beside which it began gives way to the oldest group as one does that
  // waits for its turn (CommitOrderWatch). The watch asks the server each time: not for an ordinary wait.
  std::chrono::milliseconds beside_patience{100};

  // LCRs from which on a group is executed by itself (SoloRun): merging its rows pays. With fewer it goes to the server
  // in one round trip, and so behind another one (RoundTrips).
  uint64_t solo_lcrs_min = 16;
  // The same number for the data layer, which takes most rows as they are.
  uint64_t solo_lcrs_min_below_sql = 100;
  // Bytes that the thread which assigns a group still sends itself: a socket takes them while the server is at
  // something else.
  uint64_t assigner_bytes_max = 16 * 1024;
  // Nothing goes behind a group that has run for longer: it may wait for somebody's lock.
  std::chrono::milliseconds behind_wait{1};
  // Executions of a transaction that finds another session's lock, once everything before it has committed: with pauses
  // that double it is tried for somewhat more than half a second besides the server's own waits, then its error counts.
  int lock_tries_max = 8;
  // The first of those pauses: long enough for a short transaction to end.
  std::chrono::milliseconds lock_first_pause{5};

  // The longest sleep while a group is held and no other runs: the hold must end on time.
  std::chrono::microseconds held_wait_max{1000};
  // The longest sleep while a group is held and others run: their end wakes the coordinator anyway.
  std::chrono::milliseconds others_run_wait{5};
  // Between two looks for deadlocks of the commit order (CommitOrderWatch), and so the longest sleep meanwhile.
  std::chrono::milliseconds watch_pause{20};
  // The longest sleep of the coordinator otherwise, and of an applier, also while it waits for its turn: whoever has
  // news rings, so that it only bounds what a lost ring costs.
  std::chrono::milliseconds idle_wait{100};
  // The longest sleep of the coordinator's thread while something comes: then no thread with news has to wake it for a
  // group that is held.
  std::chrono::milliseconds others_come_wait{5};
  // LCRs that may wait while a thread with news does the coordinator's work: if more wait, apply is behind, and that
  // thread has other work.
  uint64_t news_lcrs_max = 500;
  // Frames that the producer of the queue takes for the reader at a time, and frames of a transaction that it takes: if
  // more come, apply is behind, and that thread has other work.
  size_t news_frames_max = 128;
  // Bytes of a frame that it takes: copying more would hold up the capture.
  size_t news_frame_bytes_max = 64 * 1024;
};

}  // namespace thalweg::apply
