#pragma once

#include <shared_mutex>
#include <string>
#include <thread>

#include "control/managed_streams.h"
#include "daemon/sessions.h"
#include "simulation/engine.h"
#include "simulation/scheduler.h"

// Somebody who watches an engine: tries again what gave up, executes what is parked, changes live parameters, pauses
// destinations.

namespace thalweg::simulation {

// Of one life of an engine. All but the work at the error queue happens on the engine's own fiber.
class Operator {
 public:
  Operator(Scheduler& scheduler, const EngineOptions& options) : scheduler_(scheduler), options_(options) {}

  // The sessions that run from now on, until leave().
  void come(daemon::Sessions& sessions);
  void leave();
  // Many times a second. Returns what the sessions show.
  control::StreamStats look();

 private:
  void look_at_destinations(const control::StreamStats& stats);
  void execute_something();
  void execute_parked(const std::string& destination, const control::Delivery& delivery);
  void note_errors_changed(const std::string& destination);

  Scheduler& scheduler_;
  const EngineOptions& options_;
  std::shared_mutex sessions_lock_;  // as in daemon::Stream: an execution may outlast the sessions
  daemon::Sessions* sessions_ = nullptr;
  std::thread at_queue_;
  bool is_at_queue_ = false;
  std::string shown_;
};

}  // namespace thalweg::simulation
