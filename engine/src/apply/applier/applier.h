#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "apply/applier/cached_tables.h"
#include "apply/applier/destination_session.h"
#include "apply/applier/group_executor.h"
#include "apply/applier/progress_writer.h"
#include "apply/shared_state.h"
#include "apply/transaction.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"

// Runs groups of whole source transactions on a connection of its own.

namespace thalweg::apply {

// An agent. assign, take_finished, request_rollback, retire and revive belong to the coordinator; sample, active,
// latency and add_tables to anybody. What it has counted outlives its retirement.
class Applier {
 public:
  Applier(SharedState& shared, metadata::MetadataCache& cache, int number);  // from 1
  ~Applier();                                                                // joins; the shared state must be ending
  void join();
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;

  // The applier must have none. `beside`: not all that it depends on has committed.
  void assign(Group* group, bool beside);
  // By now it has, or it failed: roll back.
  void tell_settled(bool committed);
  Group* take_finished();  // or nullptr
  // The group that it holds back blocks an earlier one at the destination: roll back.
  void request_rollback();
  // Coordinator's word for why there is no work: groups wait for other groups to commit.
  void set_dependency_wait(bool waits);
  void ring() { bell_.ring(); }
  // Ends the thread and its connection; it must have no group. revive() starts anew.
  void retire();
  void revive();
  bool retiring() const { return retiring_.load(std::memory_order_relaxed); }
  // False from its retirement to its revival.
  bool active() const { return active_.load(std::memory_order_acquire); }
  int backend_pid() const { return backend_pid_.load(std::memory_order_relaxed); }
  bool waits_for_turn() const { return waits_for_turn_.load(std::memory_order_acquire); }

  telemetry::ComponentSample sample() const;
  const telemetry::LatencyHistogram& latency() const { return latency_; }
  void add_tables(std::vector<telemetry::TableSample>& tables) const;

 private:
  void run();
  base::Result<void> connect();
  void execute(Group& group);
  base::Result<void> execute_together(Group& group);
  base::Result<void> execute_singly(Group& group);
  base::Result<Refusal> execute_one(const Transaction& transaction, const base::Error* park_why);
  base::Result<void> roll_back();
  base::Result<Refusal> commit(LsnRange range);
  bool is_turn(const Group& group) const;
  // False: roll back instead.
  bool await_turn(const Group& group);
  // Until what the group was begun beside has committed. Fails with database_busy: roll back instead.
  base::Result<void> await_settled();
  void account(const Transaction& transaction);
  void publish_counts();
  void refuse_group(Group& group, base::Error error);
  void count_deadlock(const base::Error& error);
  // SQL decides what such a refusal means.
  base::Result<void> leave_data_layer(StatementFailure& failure);
  // Whether `error` comes of a table that has changed at the destination: worth another try, with its new metadata.
  base::Result<bool> is_outdated(const base::Error& error);

  SharedState& shared_;
  const int number_;
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter lcrs_, transactions_, bytes_, groups_, sets_, data_layer_calls_, merged_updates_, fallbacks_,
      deadlocks_, latency_micros_;
  telemetry::LatencyHistogram latency_;
  base::Doorbell bell_;
  // Writer: the coordinator stores a group, the applier stores null when it begins (release/acquire both ways).
  std::atomic<Group*> assigned_{nullptr};
  // Writer: the applier stores a group, the coordinator stores null when it has taken it (release/acquire).
  std::atomic<Group*> finished_{nullptr};
  // Writer: the coordinator sets, the applier clears. Relaxed: it is looked at in a loop.
  std::atomic<bool> rollback_requested_{false};
  std::atomic<bool> dependency_wait_{false};
  // What became of what the group was begun beside. Writer: the coordinator (release, after the commits it stands for).
  // Reader: the applier (acquire).
  enum class Before : uint8_t { open, committed, failed };
  std::atomic<Before> before_{Before::committed};
  // Writer: the applier. Readers: the coordinator.
  std::atomic<bool> waits_for_turn_{false};
  std::atomic<int> backend_pid_{0};
  // Writer: the coordinator (release). Reader: the applier (acquire).
  std::atomic<bool> retiring_{false};
  // Writers: the coordinator before the thread starts, the applier at its end (release). Readers: anybody (acquire).
  std::atomic<bool> active_{true};

  CachedTables metadata_;
  std::optional<DestinationSession> session_;
  std::optional<GroupExecutor> executor_;
  bool has_data_layer_ = false;  // on this connection, and it has not been found unusable
  ProgressWriter progress_;

  struct TableCounters {
    telemetry::Counter inserts, updates, deletes, truncates;
  };
  mutable std::mutex tables_mutex_;  // the map's structure; the counters are single-writer
  std::unordered_map<std::string, std::pair<telemetry::TableSample, std::unique_ptr<TableCounters>>> tables_;
  std::thread thread_;
};

}  // namespace thalweg::apply
