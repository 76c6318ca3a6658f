#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "apply/applier/applier.h"
#include "apply/coordinator/commit_order_watch.h"
#include "apply/coordinator/flow_meter.h"
#include "apply/coordinator/marker_passages.h"
#include "apply/coordinator/schedule.h"
#include "apply/parked_set.h"
#include "apply/reader/transaction_queue.h"
#include "apply/shared_state.h"
#include "base/baton.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"
#include "telemetry/snapshot.h"
#include "telemetry/transaction_sample.h"

// Carries out the schedule's decisions: hands groups to appliers, and moves the low watermark.

namespace thalweg::apply {

// An agent; it owns the appliers. Any thread may call sample, applier_count and applier; retired appliers count, too.
// The holder of the baton does its work: the agent's thread, or at low load the reader or the applier with news for it
// (docs/decisions/speed.md).
class Coordinator {
 public:
  Coordinator(SharedState& shared, metadata::MetadataCache& cache, TransactionQueue& in, ParkedSet parked);
  ~Coordinator();  // joins, and then the appliers; the reader must be ending
  void join();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Thread-safe: does the agent's work, for a new transaction or a finished group, on the caller's thread, or leaves it
  // to the thread that is at it. False: wake the agent.
  bool try_work();
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  int applier_count() const { return applier_count_.load(std::memory_order_acquire); }
  const Applier& applier(int index) const { return *appliers_[static_cast<size_t>(index)]; }
  telemetry::ComponentSample sample() const;
  const MarkerPassages& markers() const { return markers_; }
  // Complete transactions that have not committed here, as of a second ago.
  std::shared_ptr<const telemetry::TransactionSamples> transactions() const { return shown_.read(); }

 private:
  using Clock = ScheduleClock;

  void run();
  bool look();
  bool step();
  std::optional<Clock::duration> prepare_sleep();
  void sleep(uint32_t ticket, Clock::duration wait);
  void fit_appliers();
  bool take_finished();
  void count_done(const Group& group, size_t counted);
  // `counted`: as it was before.
  void record(const Group& group, Completion completion, size_t counted);
  void postpone(const Group& group);
  void show_oldest();
  void publish_progress(uint64_t committed);
  bool take_transactions();
  void pass_empty();
  bool hand_out();
  void reload_parked();
  void tell_idle_appliers();
  void show_transactions();
  std::optional<telemetry::TransactionRetry> retry_of(const Group& group) const;
  Clock::time_point now() const { return shared_.clock->steady_now(); }
  Moment moment() const;
  std::span<const std::unique_ptr<Applier>> appliers() const {
    return {appliers_.data(), static_cast<size_t>(applier_count_.load(std::memory_order_relaxed))};
  }

  SharedState& shared_;
  metadata::MetadataCache& cache_;  // its appliers'
  TransactionQueue& in_;
  // The holder does the agent's work. Guards everything below that is not atomic or published.
  base::Baton baton_;
  Schedule schedule_;
  FlowMeter flow_;
  MarkerPassages markers_;
  CommitOrderWatch commit_order_;
  Clock::time_point wakes_at_;    // the agent's thread, by itself
  uint64_t lcrs_when_woken_ = 0;  // that had come by then
  telemetry::Snapshot<telemetry::TransactionSamples> shown_;
  Clock::time_point shown_at_;
  bool shown_any_ = false;

  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter transactions_, groups_, dependent_groups_, retried_groups_, retried_transactions_, errors_;
  uint64_t error_policies_seen_ = 0;   // LiveErrorPolicies::changes()
  telemetry::Counter waiting_groups_;  // a gauge: Counter::set
  // Commit time of the oldest transaction that has not committed, 0 where there is none. Writer: this agent.
  std::atomic<int64_t> oldest_commit_time_{0};
  // Writer: the thread, at its end (release). Reader: anybody (acquire).
  std::atomic<bool> ended_{false};
  std::array<std::unique_ptr<Applier>, kAppliersMax> appliers_;
  // Writer: this agent (release, once the applier is made). Readers: anybody (acquire).
  std::atomic<int> applier_count_{0};
  std::thread thread_;
};

}  // namespace thalweg::apply
