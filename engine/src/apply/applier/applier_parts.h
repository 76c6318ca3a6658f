#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>

#include "apply/applier/applier_counts.h"
#include "apply/applier/cached_tables.h"
#include "apply/applier/destination_session.h"
#include "apply/applier/group_executor.h"
#include "apply/applier/progress_writer.h"
#include "apply/shared_state.h"
#include "apply/transaction.h"
#include "base/wake.h"
#include "telemetry/agent.h"

// Shared by the two ways to execute a group: in one round trip (RoundTrips), and alone on the connection (SoloRun).

namespace thalweg::apply {

// State of a group until its answer has come. Two groups in flight share nothing: either may fail, and each lane
// records its progress in its own row.
struct Lane {
  Lane(SharedState& shared, metadata::MetadataCache& cache, int applier, int number);
  CachedTables tables;
  std::optional<GroupExecutor> executor;  // while there is a session
  ProgressWriter progress;
  Group* group = nullptr;
};

// The exchange between coordinator and applier about the applier's group. Thread-safe, by members.
struct CoordinatorSignals {
  base::Wake wake;  // rung after anything here has changed
  // Writer: the coordinator sets, the applier clears. Relaxed: it is looked at in a loop.
  std::atomic<bool> rollback_requested{false};
  // The fate of the groups that this one was begun beside. Writer: the coordinator (release, after their commits).
  // Reader: the applier (acquire).
  enum class Before : uint8_t { open, committed, failed };
  std::atomic<Before> before{Before::committed};
  // Writer: the applier. Reader: the coordinator.
  std::atomic<bool> waits_for_turn{false};
};

// Owner: the holder of the applier's baton, except for members that are thread-safe by themselves.
struct ApplierParts {
  static constexpr size_t kLanes = 2;

  ApplierParts(SharedState& shared, metadata::MetadataCache& cache, int number);
  // Thread-safe, as the next one.
  bool uses_data_layer() const {
    return has_data_layer.load(std::memory_order_relaxed) &&
           shared.parameters.data_layer.load(std::memory_order_relaxed);
  }
  // Group::goes_in_one_round_trip() on this connection.
  uint64_t solo_lcrs() const {
    return uses_data_layer() ? shared.policy.solo_lcrs_min_below_sql : shared.policy.solo_lcrs_min;
  }
  // With commit_serialization full a group commits right behind the one before it.
  bool is_turn(const Group& group) const;
  // Counts a lane's transactions once they have committed.
  void count_committed(Lane& lane);

  SharedState& shared;
  const int number;  // from 1
  telemetry::StateText state{"INITIALIZING"};
  telemetry::TimeAccount time;
  ApplierCounts counts;
  CoordinatorSignals signals;
  std::optional<DestinationSession> session;
  // On this connection, and it has not been found unusable. Writer: the applier. Readers: anybody (relaxed: it says
  // nothing but itself).
  std::atomic<bool> has_data_layer{false};
  std::array<Lane, kLanes> lanes;  // the first one's is every group that runs alone
};

}  // namespace thalweg::apply
