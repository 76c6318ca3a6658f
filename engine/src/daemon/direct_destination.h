#pragma once

#include <chrono>
#include <optional>

#include "daemon/destination.h"

// A destination without a backlog, which reads the queue. The supervisor begins it before the capture, which begins at
// the destination's position, and its failure ends the session: capture and apply start, fail and are retried together.

namespace thalweg::daemon {

// Thread-safe: as Destination.
class DirectDestination final : public Destination {
 public:
  explicit DirectDestination(const DestinationOptions& options);
  ~DirectDestination() override;

  bool is_dropped() const override { return false; }
  bool is_forgotten() const override { return false; }

  bool lives_with_capture() const override { return true; }
  bool keeps_capture_off() const override {
    return options_.delivery.destination.status == control::DesiredStatus::disabled;
  }
  bool prepares_source() const override { return !sends(); }
  void rest() override { forget_retries(); }
  base::Result<void> begin(SessionStart& session) override;
  // Fails with its consumer's failure, or with a table's trouble.
  base::Result<void> tend() override;
  std::optional<base::Error> stream_trouble() const override { return consumer_->trouble(); }
  bool has_caught_up(QueueProducer& producer) const override { return producer.caught_up(consumer_->applied()); }
  bool needs_session() const override { return needs_session_; }
  void drain() override;
  void request_stop() override;
  bool has_ended() const override;
  void end() override;
  void release() override;
  // Adds the constraints that had to wait until its tables agreed with one state of the source.
  base::Result<void> finish_session() override;

  control::DestinationStatus status() const override;

 private:
  StartContext start_context() override;
  base::Result<void> go_on_from(base::Lsn reached) override;
  base::Result<void> check_refusal();

  std::optional<queue::QueueFrames> frames_;
  bool needs_session_ = false;
  base::Lsn constraints_from_;                // once applied that far, constraints can be added; zero: none are missing
  std::optional<base::Lsn> constraints_due_;  // they can
  std::optional<std::chrono::steady_clock::time_point> refused_since_;  // by the engine that receives
};

}  // namespace thalweg::daemon
