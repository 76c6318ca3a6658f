#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"
#include "daemon/pipeline.h"
#include "instantiation/progress.h"
#include "pg/timeline_history.h"

// From a definition to a running pipeline: everything that happens once per start of a stream.

namespace thalweg::daemon {

struct StartContext {
  std::string destination;  // id of one of several
  // Slot and publication are somebody else's: a destination of several, or a half whose sending engine has several. It
  // makes a temporary slot for its copy.
  bool shares_capture = false;
  // What a capture that runs already reads from; the start must find the same server. Empty: none runs.
  CaptureIdentity session = {};
  std::filesystem::path spill_directory;
  const base::Clock* clock = nullptr;
  Peering* peering = nullptr;
  instantiation::Progress* progress = nullptr;
  // Its `stop` is there: it ends a long copy early with engine_stopping, and whatever waits for a database.
  DatabaseWork work = {};
  std::function<void(std::string_view)> set_phase;  // INSTANTIATING
  // Whether what waits for a destination joins what it has; asked before anything is recorded of a source that has
  // changed. `came_from`: the timeline of that progress. Empty: nothing waits anywhere but at the source.
  std::function<base::Result<void>(base::Lsn low_watermark, int came_from)> check_backlog = {};
};

struct StartedDestination {
  CaptureIdentity identity;  // the source's, as the destination has recorded it
  base::Lsn low_watermark;   // everything that commits below it is there
  std::vector<apply::CatchUpSpan> catch_up;
  base::Lsn constraints_from;  // once apply has passed it, constraints can be added; zero: none are missing
};

struct StartedStream {
  std::unique_ptr<Pipeline> pipeline;  // started
  base::Lsn constraints_from;          // once apply has passed it, constraints can be added; zero: none are missing
};

// Checks both sides, makes publication and slot, instantiates what is not instantiated, starts the pipeline. When it
// fails before the stream is registered at the destination, nothing of it is left on either side. The half that sends
// leaves all that to the half that receives: it waits for that and starts its pipeline. Once it is stopped, it fails
// within seconds, whatever the databases wait for.
base::Result<StartedStream> start_stream(const control::StreamDefinition& definition, const StartContext& context);

// The part of it that concerns a destination: it can be applied to once it returns.
base::Result<StartedDestination> start_destination(const control::StreamDefinition& definition,
                                                   const StartContext& context);

struct SourceSlot {
  CaptureIdentity identity;
  pg::TimelineHistory history;
  base::Lsn confirmed_flush;  // where capture goes on
};
// Publication and slot of a stream with several destinations, made where they are missing.
base::Result<SourceSlot> start_source(const control::StreamDefinition& definition, const DatabaseWork& work);

// Adds the constraints that had to wait, between two pipelines.
base::Result<void> add_late_constraints(const control::StreamDefinition& definition, const StartContext& context,
                                        base::Lsn applied);

}  // namespace thalweg::daemon
