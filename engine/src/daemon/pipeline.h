#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "apply/apply.h"
#include "base/clock.h"
#include "base/error.h"
#include "capture/capture.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "queue/lcr_queue.h"

// One stream's capture, queue and apply: combined capture and apply. Built together, torn down together.

namespace thalweg::daemon {

apply::ApplyParameters apply_parameters(const control::StreamParameters& parameters);

struct PipelineOptions {
  control::StreamDefinition definition;
  std::string system_identifier;
  int timeline = 0;
  std::vector<apply::CatchUpSpan> catch_up;
  std::filesystem::path spill_directory;
  const base::Clock* clock = nullptr;  // outlives the pipeline
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
  // Capture stops, apply works off what the queue holds, for `patience` at most; then both have ended.
  void drain(std::chrono::milliseconds patience);
  // Both end as soon as they can; what is in the queue is read from the WAL again at the next start.
  void cut();

  // Why capture or apply ended by itself.
  std::optional<base::Error> failure() const;
  bool is_running() const;
  capture::CaptureStatus capture_status() const { return capture_->status(); }
  apply::ApplyStatus apply_status() const { return apply_->status(); }
  std::vector<telemetry::TableSample> tables() const { return apply_->tables(); }
  control::StreamStats stats() const;

  apply::Apply& apply() { return *apply_; }

 private:
  telemetry::ComponentSample queue_sample() const;

  PipelineOptions options_;
  std::unique_ptr<queue::LcrQueue> queue_;
  // Capture reads apply's confirmed position and both use the queue: destroyed in reverse order.
  std::unique_ptr<apply::Apply> apply_;
  std::unique_ptr<capture::Capture> capture_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace thalweg::daemon
