#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "apply/applier/conflict_resolver.h"
#include "apply/applier/group_executor.h"
#include "telemetry/agent.h"
#include "telemetry/sample.h"

namespace thalweg::apply {

// Counts of an applier's work, for observers; outlives the applier's retirement. committed() and take() belong to the
// thread that has the applier's baton, the other members to any thread.
class ApplierCounts {
 public:
  // A source transaction has committed here.
  void committed(const Transaction& transaction, base::UnixMicros now);
  // Adds the executor's counts by table since the previous call.
  void take(GroupExecutor& executor, base::UnixMicros now);
  void take(std::span<const ConflictResolver::Settled> conflicts);

  decltype(telemetry::ComponentSample::counters) counters() const;
  decltype(telemetry::ComponentSample::gauges) gauges() const;
  void add_tables(std::vector<telemetry::TableSample>& tables) const;
  const telemetry::LatencyHistogram& latency() const { return latency_; }

  telemetry::Counter groups, sets, data_layer_calls, merged_updates, fallbacks, deadlocks;

 private:
  telemetry::Counter lcrs_, transactions_, bytes_, latency_micros_;
  telemetry::LatencyHistogram latency_;
  mutable std::mutex tables_mutex_;
  std::unordered_map<std::string, telemetry::TableSample> tables_;  // by quoted name
};

}  // namespace thalweg::apply
