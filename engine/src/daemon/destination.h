#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/effect.h"
#include "daemon/peering.h"
#include "daemon/queue_consumer.h"
#include "daemon/queue_producer.h"
#include "daemon/ruled_frames.h"
#include "daemon/stream_start.h"
#include "daemon/table_watch.h"
#include "instantiation/progress.h"
#include "queue/backlog_consumer.h"
#include "queue/frame_source.h"
#include "queue/lcr_queue.h"
#include "queue/spillable.h"

// One destination of a stream: its copy, its apply or sender, its errors. This is the part that both kinds share: its
// consumer, and its view for the control API. A DirectDestination lives with the capture, an IndependentDestination has
// a thread of its own (docs/decisions/one-form-of-stream.md, docs/decisions/fan-out.md).

namespace thalweg::daemon {

struct DestinationOptions {
  control::Delivery delivery;
  std::filesystem::path directory;     // of its logs, where it has a backlog, and of what else it spills
  const base::Clock* clock = nullptr;  // these outlive the destination
  Peering* peering = nullptr;
  pg::SessionBoard* board = nullptr;
  TableWatch* tables = nullptr;                 // may be none
  instantiation::Progress* progress = nullptr;  // may be none
  apply::Retries* retries = nullptr;            // may be none
  Effect* effect = nullptr;                     // may be none
  const std::atomic<bool>* stop = nullptr;      // ends the start of a direct one
  std::function<void()> on_copy;                // that start begins a copy
  // Whether a new session would publish nothing more. Called by its thread.
  std::function<base::Result<bool>(const DatabaseWork&)> publishes_all = [](const auto&) { return true; };
  uint64_t backlog_segment_bytes = queue::kBacklogSegmentBytes;
};

// A session as it begins: what it offers its destinations, and what these add.
struct SessionStart {
  queue::LcrQueue& queue;                   // before the first enqueue
  const SourceSlot& slot;                   // empty: a destination prepares the source, or another engine has
  const std::atomic<uint64_t>& source_end;  // the source's WAL end, as far as known; outlives the session
  size_t next_consumer = 0;                 // of the queue; each destination that takes changes takes one
  // The capture's beginning: the slot's, unless a destination prepares the source.
  CaptureIdentity identity;
  base::Lsn from;
  const std::atomic<uint64_t>* confirmed = nullptr;  // LSN that the capture reports as durable; read until its end
  std::vector<queue::Spillable*> spillables;
};

// Thread-safe: methods marked so belong to the stream's supervisor; any thread may call the rest.
class Destination {
 public:
  virtual ~Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  std::string id() const;
  void rename(const std::string& id);
  bool sends() const { return options_.delivery.destination.send_to.has_value(); }
  // It is being dropped: nothing waits for it, and what it still has of a queue is discarded.
  virtual bool is_dropped() const = 0;
  // It was dropped, and nothing desires it any more: its object lasts as long as its session.
  virtual bool is_forgotten() const = 0;

  // --- the supervisor, in the order of a session
  // It starts, fails and stops together with the capture or receiver, and its state and errors are the stream's.
  virtual bool lives_with_capture() const = 0;
  // Nothing is to be captured: it is paused, and no other destination takes changes. Then only rest() begins it.
  virtual bool keeps_capture_off() const { return false; }
  // Its start makes publications and slot, with the snapshot of its copy, or another engine does.
  virtual bool prepares_source() const { return false; }
  virtual void rest() = 0;
  // While it is being dropped, it begins its removal. Else all transactions that commit from the session's beginning on
  // will come whole to the consumer of the queue that it takes.
  virtual base::Result<void> begin(SessionStart& session) = 0;
  // Called many times a second while the session runs. Fails with what ends the session.
  virtual base::Result<void> tend() = 0;
  // The stream's trouble that it is resolving by itself; none: all is well, or it reports trouble as its own.
  virtual std::optional<base::Error> stream_trouble() const { return std::nullopt; }
  // Whether it no longer keeps the stream from becoming REPLICATING. `producer`: the session's.
  virtual bool has_caught_up(QueueProducer& producer) const = 0;
  // It is behind: from the next session on it keeps to the disk for a while, if it can.
  virtual void keep_to_disk() {}
  // It was restored to an earlier state, and needs again what commits from there on; zero: it does not.
  virtual base::Lsn lacks_from() const { return {}; }
  // Only a new session of the capture brings it on.
  virtual bool needs_session() const = 0;
  // Applies or sends the contents of the queue, as far as it can, until has_ended() or until end() cuts it short.
  virtual void drain() = 0;
  virtual void request_stop() = 0;
  virtual bool has_ended() const = 0;
  virtual void end() = 0;    // nothing is applied or sent any more
  virtual void release() {}  // the producer has ended: releases the consumer that begin() took
  // Called between two sessions. Fails with what ends the stream's try.
  virtual base::Result<void> finish_session() { return {}; }
  // A change with which its session goes on. No effect where nothing has changed.
  virtual void take_up(const control::DestinationDefinition& desired);
  virtual void forget() {}

  // Everything that commits below is durable at the destination, or in the backlog.
  virtual base::Lsn confirmed() const;

  // --- the operator
  virtual void retry() {}
  virtual void start_over() {}  // from its destination's start on, within the session where that can be
  void forget_retries();        // it was stopped
  void note_errors_changed();   // Apply's, as the next two
  void hold_for_errors(std::chrono::milliseconds timeout);
  bool is_held() const;

  virtual control::DestinationStatus status() const;
  void add_to(control::StreamStats& stats) const;
  void add_to(telemetry::TransactionSamples& transactions) const;
  void add_to(telemetry::MarkerTrail& trail) const;

 protected:
  struct Folders {
    std::filesystem::path apply;  // what its apply spills
    std::filesystem::path rules;  // the tables that its rules have met
  };
  Destination(DestinationOptions options, Folders folders);

  virtual StartContext start_context() = 0;
  // The first position that it lacks, as its receiver says: fails where that does not join what is left.
  virtual base::Result<void> go_on_from(base::Lsn reached) = 0;
  // Its delivery, as the consumer that starts next has it.
  virtual control::Delivery present_delivery() const { return options_.delivery; }
  // Everything that commits below has been captured by an earlier session.
  virtual base::Lsn captured_before() const { return from_; }
  // With session_lock_ held.
  virtual void add_backlog_to(control::StreamStats&) const {}

  void begin_session(const SourceSlot& slot);
  base::Result<base::Lsn> start_consumer(const control::Delivery& delivery, const StartedDestination& started,
                                         queue::FrameSource& frames);
  // Its consumer reads what this session captures.
  void note_effect(const control::Delivery& delivery);
  // The session judges for it from here on, though it may be behind.
  void await_effect();
  void release_consumer();  // it has ended
  void note_confirmed(base::Lsn lsn);
  // The destination says how far it has got, which may be less than it had before it was restored to an earlier state.
  void note_reached(base::Lsn lsn);
  base::Lsn durable() const { return {durable_.load(std::memory_order_acquire)}; }
  std::optional<base::Error> unresolved_trouble() const;

  const DestinationOptions options_;
  const Folders folders_;

  // The supervisor's, between two sessions; read by whoever starts its consumer.
  base::Lsn from_;
  base::Lsn slot_made_at_;
  CaptureIdentity source_;

  mutable std::mutex mutex_;  // guards id and parameters, and more in a subclass

  mutable std::shared_mutex session_lock_;  // the life of the consumer, and more in a subclass; `from_` for readers
  std::unique_ptr<RuledFrames> ruled_;      // what the consumer reads; null: it has no rules of its own
  std::unique_ptr<QueueConsumer> consumer_;

 private:
  base::Result<std::unique_ptr<RuledFrames>> with_rules(const control::Delivery& delivery, queue::FrameSource& frames);
  void set_parameters(const control::StreamParameters& parameters);

  std::string id_;
  control::StreamParameters parameters_;  // in effect
  base::UnixMicros counted_since_{};      // its tables' counts; guarded by session_lock_
  // How often the error queue was changed. Writer: anybody. Reader: whoever starts the consumer.
  std::atomic<uint64_t> error_changes_{0};
  // At the destination. Writers: whoever runs the consumer; the supervisor between sessions (release). Readers:
  // anybody.
  std::atomic<uint64_t> durable_{0};
};

}  // namespace thalweg::daemon
