#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apply/apply.h"
#include "base/error.h"
#include "capture/capture.h"
#include "propagation/receiver.h"
#include "propagation/receiver_port.h"
#include "propagation/sender.h"
#include "queue/lcr_queue.h"
#include "simulation/engine.h"

namespace thalweg::simulation {

// The components of one engine's part of the path, wired as daemon::Sessions wires one destination without a backlog.
// Made anew after every failure.
class Pipeline {
 public:
  // `port`: where a receiving part listens.
  Pipeline(const EngineOptions& options, propagation::ReceiverPort* port);
  ~Pipeline();  // cut
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  base::Result<void> start();
  std::optional<base::Error> failure() const;
  void set_parameters(const apply::ApplyParameters& parameters);
  // What the components show.
  std::string states() const;
  // The error queue, where it applies.
  base::Result<std::vector<telemetry::ParkedTransaction>> parked() const;
  base::Result<void> execute_parked(int64_t id);
  // Ends it in order: what the queue holds is applied or sent.
  void drain();
  void cut();

 private:
  base::Result<base::Lsn> start_consumer();
  void start_capture(base::Lsn from, const std::atomic<uint64_t>& confirmed);

  const EngineOptions& options_;
  propagation::ReceiverPort* const port_;
  queue::LcrQueue queue_;
  std::unique_ptr<apply::Apply> apply_;
  std::unique_ptr<propagation::Sender> sender_;
  std::unique_ptr<propagation::Receiver> receiver_;
  std::unique_ptr<capture::Capture> capture_;
};

}  // namespace thalweg::simulation
