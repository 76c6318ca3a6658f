#pragma once

#include <chrono>
#include <optional>

#include "daemon/destination.h"

// A destination without a backlog, which reads the queue. The supervisor opens it before the capture, which begins at
// the destination's position, and its failure ends the session: capture and apply start, fail and are retried together.

namespace thalweg::daemon {

// The position where a capture begins, and its server.
struct CaptureStart {
  CaptureIdentity identity;
  base::Lsn from;
};

// Its state and its errors are the stream's. Thread-safe: as Destination; the additional methods are the supervisor's.
class DirectDestination final : public Destination {
 public:
  explicit DirectDestination(const DestinationOptions& options);
  ~DirectDestination() override;

  bool is_disabled() const { return options_.definition.status == control::DesiredStatus::disabled; }
  bool is_dropped() const override { return false; }
  bool is_forgotten() const override { return false; }

  // Begins a session as the one consumer of `queue`. `slot`: where this engine made it; empty where the start does, or
  // another engine captures.
  base::Result<CaptureStart> open(queue::LcrQueue& queue, const SourceSlot& slot);
  // Returns its failure, or a table's trouble.
  base::Result<void> look();
  std::optional<base::Error> trouble() const { return consumer_->trouble(); }  // what it mends by itself right now
  const std::atomic<uint64_t>& confirmed_lsn() const { return consumer_->confirmed(); }
  base::Lsn applied() const { return consumer_->applied(); }
  void request_stop(bool drain) override;
  bool has_ended() const override;
  void end() override;
  void release();  // after the producer's end, which reads confirmed_lsn()
  bool needs_session() const override { return needs_session_; }
  // Those that had to wait until its tables agreed with one state of the source. Between two sessions.
  base::Result<void> add_due_constraints();

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
