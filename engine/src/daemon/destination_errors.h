#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "apply/error_queue.h"
#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"

// The error queue at a stream's destination, over a connection of its own: for when no apply runs. Each fails with what
// connecting fails with, and where another engine applies with unknown_error_transaction. Once `abandon` is set,
// whatever waits for the destination is given up within seconds.

namespace thalweg::daemon {

// A part of the queue, without an execution.
base::Result<control::ParkedListView> parked_errors(const control::Delivery& delivery,
                                                    const telemetry::ParkedPart& part,
                                                    const std::atomic<bool>& abandon);
base::Result<telemetry::ParkedTree> parked_error_tree(const control::Delivery& delivery, int64_t error_id,
                                                      const telemetry::TreePart& part,
                                                      const std::atomic<bool>& abandon);
base::Result<control::ParkedContentsView> parked_error_contents(const control::Delivery& delivery, int64_t error_id,
                                                                const telemetry::ChangesPart& part,
                                                                const std::atomic<bool>& abandon);
base::Result<void> execute_parked_error(const control::Delivery& delivery, const telemetry::ParkedChoice& choice,
                                        const apply::ExecutionWatch& watch = {});
base::Result<control::DryRunView> dry_run_parked_error(const control::Delivery& delivery, int64_t error_id,
                                                       const std::string& role, const std::atomic<bool>& abandon);
base::Result<void> edit_parked_error(const control::Delivery& delivery, int64_t error_id, uint64_t change,
                                     const std::optional<telemetry::ParkedEdit>& edit, const std::string& version,
                                     const std::atomic<bool>& abandon);
base::Result<void> remove_parked_error(const control::Delivery& delivery, int64_t error_id,
                                       const std::atomic<bool>& abandon);

}  // namespace thalweg::daemon
