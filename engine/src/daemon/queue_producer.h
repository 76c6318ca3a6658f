#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/capture.h"
#include "control/desired_state.h"
#include "daemon/peering.h"
#include "propagation/receiver.h"
#include "queue/lcr_queue.h"
#include "shipment/archive.h"
#include "telemetry/rule_sample.h"
#include "telemetry/sample.h"

// The producer of a stream's queue: the capture of a source (capture_producer.cc), or the receiver of another engine's
// captured changes (receiver_producer.cc).

namespace thalweg::daemon {

// Owner: the stream's sessions. The const methods may be called by anybody between start() and join().
class QueueProducer {
 public:
  virtual ~QueueProducer() = default;

  // `from`: where the queue's consumer wants to go on. `confirmed`: what is durable for it; both outlive the producer.
  virtual base::Result<void> start(base::Lsn from, const std::atomic<uint64_t>& confirmed) = 0;
  // No further frame is enqueued once it returns.
  virtual void quiesce() = 0;
  virtual void join() = 0;

  virtual std::optional<base::Error> failure() const = 0;  // why it ended by itself
  virtual std::optional<base::Error> trouble() const = 0;  // what it mends by itself right now
  // Whether the consumer, which has got to `applied`, is done with what had waited for it when this began.
  virtual bool caught_up(base::Lsn applied) = 0;
  virtual capture::CaptureStatus capture_status() const = 0;  // zeros where another engine captures
  virtual telemetry::ComponentSample sample() const = 0;
  virtual std::vector<telemetry::ComponentSample> parts() const { return {}; }  // what else works with it
  virtual std::vector<telemetry::RuleSample> rules() const = 0;                 // none where another engine captures
  virtual void add_to(telemetry::MarkerTrail& trail) const = 0;
  // Fails with marker_refused where another engine captures, or Capture does.
  virtual base::Result<void> place_marker(const std::string& id, const std::string& label) = 0;
};

// The server that a capture reads from.
struct CaptureIdentity {
  std::string system_identifier;  // empty, zero: not compared
  int timeline = 0;
  bool operator==(const CaptureIdentity&) const = default;
};
// The source, as this host has it besides the server.
struct CapturePlaces {
  std::filesystem::path folder;  // what it remembers of the source between sessions
  std::optional<shipment::ArchivePlace> archive = {};
};
// `tap`: shows its changes, and outlives it; or null.
std::unique_ptr<QueueProducer> make_capture_producer(const control::StreamDefinition& definition,
                                                     CaptureIdentity identity, const CapturePlaces& places,
                                                     queue::LcrQueue& queue, const base::Clock& clock,
                                                     capture::ChangeTap* tap);
// `timeline`: of the source, up to which the destination's progress has been compared.
std::unique_ptr<QueueProducer> make_receiver_producer(const control::Delivery& delivery, int timeline, Peering& peering,
                                                      queue::LcrQueue& queue, const base::Clock& clock);

}  // namespace thalweg::daemon
