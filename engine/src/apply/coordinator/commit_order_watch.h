#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "apply/applier/applier.h"
#include "apply/coordinator/schedule.h"
#include "apply/shared_state.h"
#include "pg/connection.h"
#include "telemetry/agent.h"

namespace thalweg::apply {

// Groups that have executed wait before they commit (Applier::waits_for_turn): with commit_serialization full for their
// turn, in any order of commits for the groups beside which they began. Meanwhile they hold an applier and row locks,
// and the server sees no deadlock if the oldest group needs one of them. The watch rolls them back where
//   the oldest group is ready and has no applier, because parallelism went down: the latest of them,
//   the oldest group waits for a retry, and their locks would last as long: one after the other, the latest first,
//   the oldest group waits at the server for their locks, directly or through other sessions: all that it waits for.
// Owner: the coordinator's thread.
class CommitOrderWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CommitOrderWatch(SharedState& shared) : shared_(shared) {}
  // May wait for the destination's answer; `time` says so.
  void look(const Schedule& schedule, std::span<const std::unique_ptr<Applier>> appliers, Clock::time_point now,
            telemetry::TimeAccount& time);

 private:
  void give_locks_back(const Applier& blocked, std::span<const std::unique_ptr<Applier>> appliers,
                       telemetry::TimeAccount& time);

  SharedState& shared_;
  Clock::time_point looked_at_;
  std::optional<pg::Connection> connection_;  // asks for blocked backends; opened when it is needed
};

}  // namespace thalweg::apply
