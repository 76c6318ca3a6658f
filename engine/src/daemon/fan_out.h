#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"
#include "daemon/branch.h"
#include "daemon/pipeline.h"
#include "daemon/queue_producer.h"
#include "queue/lcr_queue.h"
#include "queue/queue_spiller.h"

// A stream with several destinations (Wong et al. 2009, figure 4): one capture, one queue, a branch for each
// destination. Runs in sessions, each from the slot's position (branch.h): the source is decoded once for all.

namespace thalweg::daemon {

struct FanOutOptions {
  control::StreamDefinition definition;
  std::filesystem::path spill_directory;
  const base::Clock* clock = nullptr;  // these four outlive it
  Peering* peering = nullptr;
  pg::SessionBoard* board = nullptr;
  const std::atomic<bool>* stop = nullptr;  // ends run()
  // Whether what stops it is but another definition of a stream that goes on, a paused destination say: then nobody
  // waits for the slowest, whose changes come again.
  std::function<bool()> goes_on = [] { return false; };
  std::function<void(std::string_view)> set_phase;
  std::function<void()> on_capture;                           // a session's capture runs
  std::function<TableWatch*(const std::string&)> watch_of{};  // of a destination; it outlives the fan-out. Empty: none
  uint64_t backlog_segment_bytes = queue::kBacklogSegmentBytes;
};

// Thread-safe: run belongs to the stream's supervisor, the rest to anybody.
class FanOut {
 public:
  explicit FanOut(FanOutOptions options);
  ~FanOut();
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  // Until stopped; then what the queue holds has been worked off, or lies on disk. Fails with what the capture or the
  // source fails with.
  base::Result<void> run();
  // Live parameters of stream and destinations.
  void set_parameters(const control::StreamDefinition& definition);

  Branch* find(const std::string& destination) const;  // null: there is none
  PipelinePositions positions() const;
  std::vector<control::DestinationStatus> destinations() const;
  control::StreamStats stats() const;
  telemetry::TransactionSamples transactions() const;
  telemetry::MarkerTrail markers() const;
  base::Result<void> place_marker(const std::string& id, const std::string& label);

 private:
  base::Result<void> run_session(const SourceSlot& slot);
  base::Result<void> watch();
  base::Result<void> begin(const SourceSlot& slot);
  void end(bool drain, std::chrono::milliseconds patience);
  void judge();
  bool needs_session() const;
  base::Lsn lowest_confirmed() const;

  const FanOutOptions options_;
  std::vector<std::unique_ptr<Branch>> branches_;

  mutable std::shared_mutex session_lock_;  // the life of queue and producer
  std::unique_ptr<queue::LcrQueue> queue_;
  std::unique_ptr<QueueProducer> producer_;
  std::unique_ptr<queue::QueueSpiller> spiller_;
  // The producer has started: there is a capture to ask. Writer: the supervisor (release). Readers: anybody who holds
  // session_lock_ (acquire).
  std::atomic<bool> producing_{false};
  // Writer: the supervisor (release). Readers: the capture; the branches (acquire).
  std::atomic<uint64_t> confirmed_{0};
  std::atomic<uint64_t> source_end_{0};

  // The supervisor's: what had been captured, and when.
  struct Mark {
    std::chrono::steady_clock::time_point at;
    base::Lsn captured;
  };
  std::deque<Mark> marks_;
};

}  // namespace thalweg::daemon
