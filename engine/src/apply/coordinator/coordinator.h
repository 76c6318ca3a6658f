#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "apply/applier/applier.h"
#include "apply/coordinator/dependency_table.h"
#include "apply/parked_set.h"
#include "apply/reader/transaction_queue.h"
#include "apply/shared_state.h"
#include "base/baton.h"
#include "telemetry/agent.h"
#include "telemetry/marker_log.h"
#include "telemetry/sample.h"
#include "telemetry/snapshot.h"
#include "telemetry/transaction_sample.h"

// Groups transactions, orders the groups, hands them to appliers, and moves the low watermark.

namespace thalweg::apply {

// An agent; it owns the appliers. sample, applier_count and applier belong to anybody. Appliers that were retired
// count, too. Its work is done by whoever holds the turn: the agent's thread, or while little comes the reader or the
// applier that has news for it (docs/decisions/speed.md).
class Coordinator {
 public:
  Coordinator(SharedState& shared, metadata::MetadataCache& cache, TransactionQueue& in, ParkedSet parked);
  ~Coordinator();  // joins, and then the appliers; the reader must be ending
  void join();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Thread-safe: handles a new transaction or a finished group on the caller's thread, or leaves it to whoever is at
  // the agent's work. False: wake the agent.
  bool take_news();
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  int applier_count() const { return applier_count_.load(std::memory_order_acquire); }
  const Applier& applier(int index) const { return *appliers_[static_cast<size_t>(index)]; }
  telemetry::ComponentSample sample() const;
  const telemetry::MarkerLog& markers_dispatched() const { return markers_dispatched_; }
  const telemetry::MarkerLog& markers_committed() const { return markers_committed_; }
  // Of markers: from their commit at the source until everything before them had committed here.
  const telemetry::LatencyHistogram& marker_latency() const { return marker_latency_; }
  // Complete transactions that have not committed here, as of a second ago.
  std::shared_ptr<const telemetry::TransactionSamples> transactions() const { return shown_.read(); }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool handle_news();
  bool step();
  std::optional<Clock::duration> rest();
  void sleep(uint32_t ticket, Clock::duration wait);
  void fit_appliers();
  bool take_finished();
  void finish(Group& group);
  void advance();
  bool form_groups();
  bool add_to_tail();
  void begin_group();
  void add(Group& group, std::unique_ptr<Transaction> transaction);
  void skip_empty();
  void finish_markers();
  bool dispatch();
  bool is_ready(const Group& group) const;
  bool is_full(const Group& group) const;
  bool may_begin_beside(const Group& group) const;
  std::optional<int> applier_for(const Group& group) const;
  bool may_go_behind(const Group& group, int applier) const;
  int applier_of(const Group& group) const;  // that runs it
  void settle();
  Clock::duration hold_left(const Group& group) const;
  Clock::duration patience(const Group& group) const;
  void measure_flow();
  bool has_committed(uint64_t number) const;
  void mark_parked(Group& group);
  void reload_parked();
  void resolve_commit_order_deadlock();
  void give_locks_back(const Applier& blocked);
  void tell_idle_appliers();
  void show_transactions(Clock::time_point now);
  Group* tail();
  int idle_appliers() const;
  bool has_room() const;  // for another group in the window

  SharedState& shared_;
  metadata::MetadataCache& cache_;  // its appliers'
  TransactionQueue& in_;
  // Held by whoever does the agent's work. Everything below that is not atomic or published is guarded by it.
  base::Baton baton_;
  Clock::time_point wakes_at_;    // the agent's thread, by itself
  uint64_t lcrs_when_woken_ = 0;  // that had come by then
  ParkedSet parked_;
  DependencyTable dependencies_;
  std::deque<std::unique_ptr<Group>> window_;  // by number, from the oldest uncommitted one
  uint64_t next_number_ = 1;
  uint64_t committed_through_ = 0;
  uint64_t waiting_ = 0;  // groups of the window that no applier has
  int running_ = 0;
  int usable_ = 0;  // appliers that may be given groups: the first so many
  std::array<Group*, kAppliersMax> busy_with_{};
  std::array<Group*, kAppliersMax> behind_{};  // sent behind that one
  std::array<Clock::time_point, kAppliersMax> busy_since_{};
  std::array<bool, kAppliersMax> beside_{};  // the applier's group, begun before all that it depends on had committed
  Clock::time_point tail_since_;
  Clock::time_point flow_since_;  // measure_flow's window
  uint64_t flow_lcrs_ = 0;
  bool in_steady_flow_ = false;
  Clock::time_point rests_until_;  // no group is begun beside others
  Clock::time_point watched_at_;
  std::optional<pg::Connection> watch_;  // looks for blocked backends; opened when it is needed

  struct Marker {
    base::Lsn commit_lsn;
    base::Lsn end_lsn;
    base::UnixMicros commit_time;
  };
  std::deque<Marker> markers_;  // that have not all before them committed; kMarkersMax at most
  telemetry::MarkerLog markers_dispatched_;
  telemetry::MarkerLog markers_committed_;
  telemetry::LatencyHistogram marker_latency_;
  telemetry::Snapshot<telemetry::TransactionSamples> shown_;
  Clock::time_point shown_at_;
  bool shown_any_ = false;

  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter transactions_, groups_, dependent_groups_, retried_groups_, errors_;
  telemetry::Counter waiting_groups_;  // a gauge
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
