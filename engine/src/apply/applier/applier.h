#pragma once

#include <array>
#include <atomic>
#include <deque>
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
#include "apply/spsc_ring.h"
#include "apply/transaction.h"
#include "base/baton.h"
#include "base/wake.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"

// Runs groups of whole source transactions on a connection of its own.

namespace thalweg::apply {

// An agent. assign, take_finished, request_rollback, retire and revive belong to the coordinator; sample, active,
// latency and add_tables to anybody. What it has counted outlives its retirement.
// Small groups go to the server one behind the other, each in one round trip, without waiting for the answer of the one
// before (docs/decisions/groups.md).
class Applier {
 public:
  static constexpr size_t kGroupsMax = 2;  // that it may have at a time

  Applier(SharedState& shared, metadata::MetadataCache& cache, int number);  // from 1
  ~Applier();                                                                // joins; the commits must have ended
  void join();
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;

  // The applier must have none, or, for a second one, a small one that was not begun beside others. `beside`: not all
  // that it depends on has committed. A small group is on its way to the server when this returns, unless the applier's
  // thread is at something.
  void assign(Group* group, bool beside);
  // By now it has, or it failed: roll back.
  void tell_settled(bool committed);
  Group* take_finished();  // or nullptr
  // The group that it holds back blocks an earlier one at the destination: roll back.
  void request_rollback();
  // Coordinator's word for why there is no work: groups wait for other groups to commit.
  void set_dependency_wait(bool waits);
  void ring() { wake_.ring(); }
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
  // What a group needs until its answer has come. Those of two groups on their way have nothing to do with each other:
  // either may fail, and progress is recorded in a row for each lane.
  struct Lane {
    Lane(SharedState& shared, metadata::MetadataCache& cache, int applier, int number);
    CachedTables tables;
    std::optional<GroupExecutor> executor;  // while there is a session
    ProgressWriter progress;
    Group* group = nullptr;
  };
  struct NotCommitted {
    Lane* lane;
    base::Result<StatementFailure> why;  // an error: of the connection, or bytes that cannot be right
  };

  enum class By : uint8_t { agent, assigner };

  void run();
  base::Result<void> connect();
  bool attend(By by);
  void take_answers();
  void take_answer(base::Result<Refusal> answer);
  Lane* free_lane();
  bool may_send(const Group& group) const;
  bool takes_no_time(const Lane& lane, const Group& group) const;
  base::Result<void> send(Lane& lane);
  void work_alone();
  void show_wait();
  void finish(Lane& lane);
  bool uses_data_layer() const;
  base::Result<void> execute(Group& group);
  base::Result<void> execute_together(Group& group);
  base::Result<void> take_refusal(Lane& lane, StatementFailure& failure);
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
  void publish_counts(GroupExecutor& executor);
  void refuse_group(Group& group, base::Error error);
  void count_deadlock(const base::Error& error);
  // SQL decides what such a refusal means.
  base::Result<void> leave_data_layer(StatementFailure& failure);
  // Whether `error` comes of a table that has changed at the destination: worth another try, with its new metadata.
  base::Result<bool> is_outdated(Lane& lane, const base::Error& error);

  SharedState& shared_;
  const int number_;
  telemetry::StateText state_{"INITIALIZING"};
  telemetry::TimeAccount time_;
  telemetry::Counter lcrs_, transactions_, bytes_, groups_, sets_, data_layer_calls_, merged_updates_, fallbacks_,
      deadlocks_, latency_micros_;
  telemetry::LatencyHistogram latency_;
  base::Wake wake_;
  SpscRing<Group*> assigned_{kGroupsMax};  // pushed by the coordinator
  SpscRing<Group*> finished_{kGroupsMax};  // pushed by the applier
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

  // Who has it works with the connection, and with all that follows.
  base::Baton baton_;
  std::optional<DestinationSession> session_;
  bool listens_ = false;                // the thread that sleeps does so until the server answers
  bool heard_ = false;                  // something came from the server
  bool has_data_layer_ = false;         // on this connection, and it has not been found unusable
  std::array<Lane, kGroupsMax> lanes_;  // the first one's is every group that does not go in one round trip
  std::deque<Lane*> sent_;              // whose answers have not come, in their order
  std::deque<NotCommitted> failed_;     // nothing is sent before these have been seen to

  mutable std::mutex tables_mutex_;
  std::unordered_map<std::string, telemetry::TableSample> tables_;  // by quoted name
  std::thread thread_;
};

}  // namespace thalweg::apply
