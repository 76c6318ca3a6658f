#include "apply/applier/applier_counts.h"

#include <algorithm>
#include <chrono>

namespace thalweg::apply {

void ApplierCounts::committed(const Transaction& transaction, base::UnixMicros now) {
  lcrs_.add(transaction.lcrs);
  bytes_.add(transaction.bytes);
  transactions_.add();
  const int64_t micros = std::max<int64_t>(now.value - transaction.commit_time.value, 0);
  latency_.record(std::chrono::microseconds(micros));
  latency_micros_.set(static_cast<uint64_t>(micros));
}

void ApplierCounts::take(GroupExecutor& executor, base::UnixMicros now) {
  const std::lock_guard lock(tables_mutex_);
  for (const auto& [table, counts] : executor.take_counts()) {
    const telemetry::LastChange last{.at_source = counts.newest, .at_destination = now};
    auto& sum = tables_[table->quoted_name];
    sum.schema_name = table->source.schema_name;
    sum.table_name = table->source.table_name;
    sum.add({.schema_name = {},
             .table_name = {},
             .inserts = counts.inserts,
             .updates = counts.updates,
             .deletes = counts.deletes,
             .truncates = counts.truncates,
             .last_change = last});
  }
}

void ApplierCounts::take(std::span<const ConflictResolver::Settled> conflicts) {
  const std::lock_guard lock(tables_mutex_);
  for (const auto& [table, kind] : conflicts) {
    auto& sum = tables_[table->quoted_name];
    sum.schema_name = table->source.schema_name;
    sum.table_name = table->source.table_name;
    ++sum.conflicts[static_cast<size_t>(kind)];
  }
}

void ApplierCounts::add_tables(std::vector<telemetry::TableSample>& tables) const {
  const std::lock_guard lock(tables_mutex_);
  for (const auto& [name, table] : tables_) telemetry::add_table(tables, table);
}

decltype(telemetry::ComponentSample::counters) ApplierCounts::counters() const {
  return {{"lcrs", lcrs_.get()},
          {"transactions", transactions_.get()},
          {"bytes", bytes_.get()},
          {"groups", groups.get()},
          {"sets", sets.get()},
          {"data_layer_calls", data_layer_calls.get()},
          {"merged_updates", merged_updates.get()},
          {"fallbacks", fallbacks.get()},
          {"deadlocks", deadlocks.get()}};
}

decltype(telemetry::ComponentSample::gauges) ApplierCounts::gauges() const {
  return {{"latency_us", static_cast<int64_t>(latency_micros_.get())}};
}

}  // namespace thalweg::apply
