#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "pg/connection.h"
#include "telemetry/conflict.h"

// Single changes that a handler or a policy has settled, as the destination has them in thalweg.conflict_log
// (docs/decisions/conflicts.md). Over any connection, whether the stream's apply runs or not.

namespace thalweg::apply {

// An empty list when the log does not exist. `page_bytes_max`: of its values.
base::Result<telemetry::LoggedConflicts> list_conflicts(pg::Connection& connection, std::string_view stream_id,
                                                        const telemetry::ConflictPart& part,
                                                        uint64_t page_bytes_max = telemetry::kConflictPageBytesMax);
// Counts by table, kind and action; those with the most changes first, kConflictListMax at most.
base::Result<std::vector<telemetry::LoggedCount>> count_conflicts(pg::Connection& connection,
                                                                  std::string_view stream_id);
// Removes the oldest of those that are older than `retention`, some thousands at most. True: there may be more.
base::Result<bool> prune_conflicts(pg::Connection& connection, std::string_view stream_id, std::chrono::days retention);

}  // namespace thalweg::apply
