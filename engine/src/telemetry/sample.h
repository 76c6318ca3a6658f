#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "telemetry/agent.h"
#include "telemetry/conflict.h"

// One component's numbers at one moment, as GET /v1/stats shows them (engine/contract/stats.example.json). Components
// fill these; the control layer turns them into JSON and /metrics without knowing what they mean.

namespace thalweg::telemetry {

struct ComponentSample {
  std::string_view type;                                        // CAPTURE, QUEUE, APPLY: a string literal
  std::string_view name;                                        // "apply"
  std::string_view sub_component;                               // "APPLY READER"; empty where the component has none
  int server = 0;                                               // applier number from 1; 0 where it does not arise
  std::string_view state;                                       // from StateText: a string literal
  std::optional<std::array<uint64_t, kActivityCount>> time_ns;  // by Activity; none for a queue
  std::vector<std::pair<std::string_view, uint64_t>> counters;  // cumulative since the component started
  std::vector<std::pair<std::string_view, int64_t>> gauges;
  std::string destination = {};  // id of the one destination of several that it serves; empty where shared
};

// When the newest change was committed: at the source, by its clock, and at the destination, by the engine's.
struct LastChange {
  base::UnixMicros at_source;
  base::UnixMicros at_destination;
};

// Rows changed at the destination since apply started.
struct TableSample {
  std::string schema_name;
  std::string table_name;
  uint64_t inserts = 0;
  uint64_t updates = 0;
  uint64_t deletes = 0;
  uint64_t truncates = 0;
  std::optional<LastChange> last_change = {};
  ConflictCounts conflicts = {};

  bool is_same_table(const TableSample& other) const {
    return schema_name == other.schema_name && table_name == other.table_name;
  }
  void add(const TableSample& more) {
    inserts += more.inserts;
    updates += more.updates;
    deletes += more.deletes;
    truncates += more.truncates;
    for (size_t kind = 0; kind < conflicts.size(); ++kind) conflicts[kind] += more.conflicts[kind];
    if (more.last_change && (!last_change || last_change->at_source < more.last_change->at_source))
      last_change = more.last_change;
  }
};

// Adds one table's to those of the same table in `to`.
void add_table(std::vector<TableSample>& to, const TableSample& more);

}  // namespace thalweg::telemetry
