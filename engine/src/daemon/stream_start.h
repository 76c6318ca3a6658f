#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"
#include "daemon/peering.h"
#include "daemon/queue_consumer.h"
#include "daemon/queue_producer.h"
#include "instantiation/progress.h"
#include "pg/timeline_history.h"

// Everything that happens once per start: of a stream's capture, and of a destination.

namespace thalweg::daemon {

// The context of a destination's start.
struct StartContext {
  std::string destination;  // its id
  // Slot and publications are there already: this engine's, for all destinations, or the engine's that captures. It
  // makes a temporary slot for its copy. Else the start makes them, and takes them away when it fails too soon.
  bool joins_capture = false;
  // The server of a running capture; the start must find the same one. Empty: no capture runs.
  CaptureIdentity session = {};
  instantiation::Progress* progress = nullptr;
  std::filesystem::path folder = {};  // of the stream's mining, where it mines
  // Its `stop` ends a long copy early with engine_stopping, and every wait for a database.
  DatabaseWork work = {};
  std::function<void()> on_copy;  // it begins
  // Checks that a destination's backlog joins its progress; called before anything is recorded about a changed source.
  // `came_from`: the timeline of that progress. Empty: changes wait only at the source.
  std::function<base::Result<void>(base::Lsn low_watermark, int came_from)> check_backlog = {};
};

struct StartedDestination {
  CaptureIdentity identity;  // the source's, as the destination has recorded it
  base::Lsn low_watermark;   // everything that commits below it is there
  std::vector<apply::CatchUpSpan> catch_up;
  base::Lsn constraints_from;  // once apply has passed it, constraints can be added; zero: none are missing
};

// Checks both sides and instantiates the missing tables; afterwards apply can run at the destination. Without
// `joins_capture` it creates publications and slot; if it fails before the stream is registered at the destination, it
// leaves nothing on either side. Once stopped, it fails within seconds, whatever the databases wait for.
base::Result<StartedDestination> start_destination(const control::Delivery& delivery, const StartContext& context);

struct SourceSlot {
  CaptureIdentity identity;
  pg::TimelineHistory history{0};
  base::Lsn confirmed_flush = {};  // where capture goes on
  base::Lsn made_at = {};          // by this engine; zero: it was there, or nobody knows
};
// Publications and slot of a stream whose destinations join its capture, made where they are missing. `folder`: of its
// mining, if it mines. `again_from`: a destination lacks what commits from there on, which is mined again where it is
// kept; zero: none does.
base::Result<SourceSlot> start_source(const control::StreamDefinition& definition, const DatabaseWork& work,
                                      const std::filesystem::path& folder, base::Lsn again_from);
// Whether start_source would leave the publications as they are.
base::Result<bool> publishes_all(const control::StreamDefinition& definition, const DatabaseWork& work);

// Adds the constraints that had to wait, while nothing is applied.
base::Result<void> add_late_constraints(const control::Delivery& delivery, const StartContext& context,
                                        base::Lsn applied);

}  // namespace thalweg::daemon
