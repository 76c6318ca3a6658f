#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/destination.h"
#include "daemon/effect.h"
#include "daemon/kind_change.h"
#include "daemon/lifecycle.h"
#include "daemon/peering.h"
#include "daemon/queue_producer.h"
#include "queue/lcr_queue.h"
#include "queue/queue_spiller.h"

// The running part of a stream in this engine: a capture or a receiver, one queue, its destinations (Wong et al. 2009,
// figure 4). It runs in sessions, each from the slot's position (independent_destination.h): the source is decoded once
// for all.
//   combined capture and apply   capture  -> queue -> apply
//   the engine that captures     capture  -> queue -> sender
//   the engine that receives     receiver -> queue -> apply
//   fan-out                      capture  -> queue -> several of these, each behind its backlog

namespace thalweg::daemon {

// State of one destination that survives a session. Each member guards itself.
struct DestinationMemory {
  TableWatch tables;
  instantiation::Progress progress;
  apply::Retries retries;
  Effect effect;
  // `effect_file`: of the effect.
  DestinationMemory(const base::Clock& clock, std::filesystem::path effect_file)
      : tables(clock), progress(clock), effect(std::move(effect_file)) {}
};

struct SessionsOptions {
  control::StreamDefinition definition;
  std::filesystem::path spill_directory;
  std::filesystem::path archives_file = {};  // shipment/archives_file.h
  // Of the desired definition, where that is another one than `definition` has, which is the present one.
  std::optional<control::CaptureKind> wanted_kind = {};
  const base::Clock* clock = nullptr;  // these four outlive it
  Peering* peering = nullptr;
  pg::SessionBoard* board = nullptr;
  capture::ChangeTap* tap = nullptr;        // of the capture; outlives it, too
  const std::atomic<bool>* stop = nullptr;  // ends run()
  // Whether it stops only because the stream gets another definition and continues, for example with a paused
  // destination. Then it does not wait for the slowest destination, whose changes come again.
  std::function<bool()> goes_on = [] { return false; };
  std::function<void(State)> set_state;
  std::function<void()> on_capture;  // a session's capture or receiver runs
  std::function<void()> on_look;     // many times a second, while it does
  // Reports the trouble that producer or consumer are resolving by themselves; none: all is well.
  std::function<void(const std::optional<base::Error>&)> note_trouble = [](const auto&) {};
  std::function<DestinationMemory*(const std::string&)> memory_of{};  // it outlives the sessions. Empty: none
  uint64_t backlog_segment_bytes = queue::kBacklogSegmentBytes;
};

// LSNs, zero where they are not known here.
struct StreamPositions {
  base::Lsn captured;
  base::Lsn source_end;
  base::Lsn confirmed;
};

// Whether the sessions of `from` can go on for `to`: live parameters, names and the kind of capture have changed, or a
// destination with a backlog is paused, resumed, dropped, gets other rules, or was dropped and is not desired any more.
bool goes_on_with(const control::StreamDefinition& from, const control::StreamDefinition& to);

// Thread-safe: run belongs to the stream's supervisor; any thread may call the rest.
class Sessions {
 public:
  explicit Sessions(SessionsOptions options);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // Runs until stopped, or until the other kind of capture is to go on; then the contents of the queue are applied,
  // sent, or on disk. Returns the failure of the capture, of the source, or of a destination that lives with the
  // capture.
  base::Result<void> run();
  // Whether everything is ready for switch_kind(). Called by the supervisor.
  bool changes_kind() const { return changes_kind_; }
  // Applies a change that goes_on_with() allows while the sessions run. Called by the supervisor.
  void take_up(const control::StreamDefinition& definition);

  Destination* find(const std::string& destination) const;  // null: there is none
  StreamPositions positions() const;
  std::optional<control::KindChangeStatus> kind_change() const;  // none: the desired kind captures
  std::optional<control::RuleCounts> rule_counts() const;
  std::vector<control::DestinationStatus> destinations() const;
  control::StreamStats stats() const;
  telemetry::TransactionSamples transactions() const;
  telemetry::MarkerTrail markers() const;
  base::Result<void> place_marker(const std::string& id, const std::string& label);
  bool captures() const;  // a capture runs in this engine

 private:
  base::Result<void> run_to_the_end();
  base::Result<SourceSlot> prepare_source();
  base::Lsn lacked_from() const;
  base::Result<void> find_archive();
  base::Result<void> run_session(const SourceSlot& slot);
  base::Result<void> begin(const SourceSlot& slot);
  base::Result<void> begin_destinations(SessionStart& session);
  base::Result<void> watch();
  void look();
  void rest();
  void end(bool drain, std::chrono::milliseconds patience);
  void judge(base::Lsn captured);
  bool needs_session() const;
  void look_at_kind();
  void end_kind_change();
  bool has_direct() const;
  base::Lsn lowest_confirmed() const;

  const SessionsOptions options_;
  std::optional<shipment::ArchivePlace> archive_;  // of this session
  std::vector<std::unique_ptr<Destination>> destinations_;

  mutable std::shared_mutex session_lock_;  // the life of queue and producer
  std::unique_ptr<queue::LcrQueue> queue_;
  std::unique_ptr<QueueProducer> producer_;
  base::UnixMicros producer_since_;
  std::unique_ptr<queue::QueueSpiller> spiller_;
  // The producer has started: there is a capture to ask. Writer: the supervisor (release). Readers: anybody who holds
  // session_lock_ (acquire).
  std::atomic<bool> producing_{false};
  // The lowest position of all destinations, and the source's WAL end as the capture last knew it. Writer: the
  // supervisor (release). Readers: the destinations (acquire), and the capture, which reads its direct destination's
  // own position in the place of the first where it has one.
  std::atomic<uint64_t> confirmed_{0};
  std::atomic<uint64_t> source_end_{0};

  // The supervisor's: what had been captured, and when.
  struct Mark {
    std::chrono::steady_clock::time_point at;
    base::Lsn captured;
  };
  std::deque<Mark> marks_;
  control::CaptureKind wanted_kind_;
  bool changes_kind_ = false;

  std::unique_ptr<KindChange> kind_change_;  // made once the capture runs. Its life is guarded by session_lock_
};

}  // namespace thalweg::daemon
