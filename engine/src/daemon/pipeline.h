#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "apply/apply.h"
#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/peering.h"
#include "daemon/queue_consumer.h"
#include "daemon/queue_producer.h"
#include "queue/lcr_queue.h"

// What of a stream runs in this engine: a producer, a queue, a consumer, built together and torn down together.
//   combined capture and apply   capture  -> queue -> apply
//   the half that sends          capture  -> queue -> sender
//   the half that receives       receiver -> queue -> apply

namespace thalweg::daemon {

struct PipelineOptions {
  control::StreamDefinition definition;
  CaptureIdentity identity;
  std::vector<apply::CatchUpSpan> catch_up;
  std::filesystem::path spill_directory;
  const base::Clock* clock = nullptr;  // outlives the pipeline
  Peering* peering = nullptr;          // outlives the pipeline
  DatabaseWork work = {};              // of its start
};

// LSNs, zero where they are not known here.
struct PipelinePositions {
  base::Lsn captured;
  base::Lsn source_end;
  base::Lsn applied;
  base::Lsn confirmed;
};

// Owner: the stream's supervisor. The const methods and those of the error queue may be called by anybody between
// start() and the end of drain() or cut().
class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();  // cut()
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  base::Result<void> start();
  void set_parameters(const control::StreamParameters& parameters);
  // The producer stops, the consumer works off what the queue holds, for `patience` at most; then both have ended.
  void drain(std::chrono::milliseconds patience);
  // Both end as soon as they can; what is in the queue is read from the WAL again at the next start.
  void cut();

  std::optional<base::Error> failure() const;  // why one of the two ended by itself
  std::optional<base::Error> trouble() const;  // what one of the two mends by itself right now
  bool caught_up();
  PipelinePositions positions() const;
  std::vector<telemetry::TableSample> tables() const { return consumer_->tables(); }
  // When tables() began to count; none in the half that sends.
  std::optional<base::UnixMicros> counted_since() const;
  control::StreamStats stats() const;
  telemetry::MarkerTrail markers() const;
  base::Result<void> place_marker(const std::string& id, const std::string& label) {
    return producer_->place_marker(id, label);
  }

  apply::Apply* apply() { return consumer_->apply(); }  // null in the half that sends

 private:
  const PipelineOptions options_;
  // Producer and consumer use the queue, and the producer reads the consumer's confirmed position: destroyed in
  // reverse.
  queue::LcrQueue queue_;
  queue::QueueFrames frames_{queue_, 0};
  const std::unique_ptr<QueueConsumer> consumer_;
  const std::unique_ptr<QueueProducer> producer_;
  const base::UnixMicros made_at_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace thalweg::daemon
