#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "apply/applier/applier_parts.h"
#include "apply/applier/round_trips.h"
#include "apply/applier/solo_run.h"
#include "apply/shared_state.h"
#include "apply/spsc_ring.h"
#include "apply/transaction.h"
#include "base/baton.h"
#include "telemetry/sample.h"

// Runs groups of whole source transactions on a connection of its own.

namespace thalweg::apply {

// An agent. The constructor, join and the destructor belong to its owner, the coordinator; methods are grouped by who
// may call them. Its counters outlive its retirement. The holder of its baton does its work: its thread, or the thread
// that assigns a small group.
class Applier {
 public:
  static constexpr size_t kGroupsMax = ApplierParts::kLanes;  // that it may have at a time

  Applier(SharedState& shared, metadata::MetadataCache& cache, int number);  // from 1
  ~Applier();                                                                // joins; the commits must have ended
  void join();
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;

  // --- the holder of the coordinator's baton
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
  // Ends the thread and its connection; it must have no group. revive() starts anew.
  void retire();
  void revive();
  bool retiring() const { return retiring_.load(std::memory_order_relaxed); }

  // --- anybody
  // Has its thread look at whether it ends, and at its turn to commit.
  void ring() { parts_.signals.wake.ring(); }
  // False from its retirement to its revival.
  bool active() const { return active_.load(std::memory_order_acquire); }
  // LCRs of a group that is not sent in one round trip any more.
  uint64_t solo_lcrs() const { return parts_.solo_lcrs(); }
  int backend_pid() const { return backend_pid_.load(std::memory_order_relaxed); }  // 0: not connected
  // Its group has executed and holds back its commit: for its turn, or for groups beside which it began, if that has
  // lasted.
  bool waits_for_turn() const { return parts_.signals.waits_for_turn.load(std::memory_order_acquire); }
  telemetry::ComponentSample sample() const;
  const telemetry::LatencyHistogram& latency() const { return parts_.counts.latency(); }
  void add_tables(std::vector<telemetry::TableSample>& tables) const { parts_.counts.add_tables(tables); }

 private:
  enum class By : uint8_t { agent, assigner };

  void run();
  base::Result<void> connect();
  bool attend(By by);
  void work_alone();
  void show_wait();
  void finish(Lane& lane);

  SharedState& shared_;
  SpscRing<Group*> assigned_{kGroupsMax};  // pushed by the coordinator
  SpscRing<Group*> finished_{kGroupsMax};  // pushed by the holder of the baton
  // Writer: the coordinator. Reader: the holder of the baton. Relaxed: it says nothing but itself.
  std::atomic<bool> dependency_wait_{false};
  // Writer: the applier's thread. Readers: anybody. Relaxed: it says nothing but itself.
  std::atomic<int> backend_pid_{0};
  // Writer: the coordinator (release). Reader: the applier's thread (acquire).
  std::atomic<bool> retiring_{false};
  // Writers: the coordinator before the thread starts, the thread at its end (release). Readers: anybody (acquire).
  std::atomic<bool> active_{true};

  // The holder works with the connection, and with everything below. Without a thread, the coordinator does.
  base::Baton baton_;
  ApplierParts parts_;
  RoundTrips round_trips_;
  SoloRun alone_;
  std::thread thread_;
};

}  // namespace thalweg::apply
