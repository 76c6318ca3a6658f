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

// With commit_serialization full, later groups that have executed wait for the oldest one to commit. It may need what
// they hold: an applier, when there are fewer now than when it was dispatched, or a lock, directly or by way of others
// that wait for one. The server sees no deadlock in either. The watch has such groups rolled back. Owner: the
// coordinator's thread.
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
