#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "apply/apply.h"
#include "base/error.h"
#include "base/ids.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/database_work.h"
#include "daemon/peering.h"
#include "daemon/table_watch.h"
#include "queue/frame_source.h"

// The consumer of a stream's queue: the apply of a destination (apply_consumer.cc), or the sender to another engine
// (sender_consumer.cc).

namespace thalweg::daemon {

// Owner: its destination. The const methods may be called by anybody between start() and join().
class QueueConsumer {
 public:
  virtual ~QueueConsumer() = default;

  // Where the producer is to start. It fails when the consumer cannot say that now; then nothing runs.
  virtual base::Result<base::Lsn> start() = 0;
  virtual void set_parameters(const control::StreamParameters& parameters) = 0;
  // drain: work off what the queue holds first (the producer is quiet). Otherwise as soon as possible.
  virtual void request_stop(bool drain) = 0;
  virtual bool is_running() const = 0;
  virtual void join() = 0;

  virtual std::optional<base::Error> failure() const = 0;  // why it ended by itself
  virtual std::optional<base::Error> trouble() const = 0;  // what it mends by itself right now
  virtual const std::atomic<uint64_t>& confirmed() const = 0;
  virtual base::Lsn applied() const = 0;
  // Nothing that commits there or above has been taken by an earlier consumer. Called by whoever has started it.
  virtual base::Lsn begins_at() const = 0;
  // Components behind the queue, latency, tables, error queue.
  virtual void add_to(control::StreamStats& stats) const = 0;
  virtual void add_to(telemetry::MarkerTrail& trail) const = 0;
  virtual std::vector<telemetry::TableSample> tables() const = 0;
  virtual apply::Apply* apply() = 0;  // null where another engine applies
};

// `frames`, `retries` and `tables` (which may be none), and for a sender `peering`, outlive the consumer. `work`: of
// its start.
std::unique_ptr<QueueConsumer> make_apply_consumer(const control::Delivery& delivery,
                                                   std::vector<apply::CatchUpSpan> catch_up,
                                                   std::filesystem::path spill_directory, queue::FrameSource& frames,
                                                   const base::Clock& clock, const DatabaseWork& work,
                                                   apply::Retries* retries, TableWatch* tables);
// `timeline`: of the source, that the frames come from.
std::unique_ptr<QueueConsumer> make_sender_consumer(const control::Delivery& delivery, int timeline,
                                                    const Peering& peering, queue::FrameSource& frames,
                                                    const base::Clock& clock);

}  // namespace thalweg::daemon
