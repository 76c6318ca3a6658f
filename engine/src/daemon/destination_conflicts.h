#pragma once

#include <atomic>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "telemetry/conflict.h"

// The conflict log at a stream's destination, over a connection of its own: for when no apply runs. Each fails with
// what connecting fails with, and where another engine applies with invalid_request. Once `abandon` is set, whatever
// waits for the destination is given up within seconds.

namespace thalweg::daemon {

base::Result<telemetry::LoggedConflicts> logged_conflicts(const control::Delivery& delivery,
                                                          const telemetry::ConflictPart& part,
                                                          const std::atomic<bool>& abandon);
base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const control::Delivery& delivery,
                                                                  const std::atomic<bool>& abandon);

}  // namespace thalweg::daemon
