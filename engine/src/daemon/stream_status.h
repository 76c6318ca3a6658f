#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "control/managed_streams.h"
#include "instantiation/progress.h"

// What the statuses of a stream and of one destination of several have in common.

namespace thalweg::daemon {

control::InstantiationStatus to_status(const instantiation::ProgressReport& report);
std::string_view mode_of(const control::StreamDefinition& definition);

std::vector<control::TableStatus> table_statuses(std::span<const control::TableRef> tables,
                                                 std::span<const telemetry::TableSample> changes,
                                                 const instantiation::ProgressReport& copied, bool running);

// Of a destination's tables, to those that have none yet.
void add_troubles(std::vector<control::TableStatus>& to, std::span<const control::TableStatus> from);

// `Status`: control::StreamStatus or control::DestinationStatus.
template <typename Status>
void add_tables(Status& out, std::span<const control::TableRef> tables, std::span<const telemetry::TableSample> changes,
                const instantiation::ProgressReport& copied, bool running, bool copies) {
  if (copies && copied.started_at) out.instantiation = to_status(copied);
  out.tables = table_statuses(tables, changes, copied, running);
}

}  // namespace thalweg::daemon
