#pragma once

#include <atomic>

#include "base/error.h"
#include "control/desired_state.h"

// Operators' actions on a table's trouble, over connections of their own: they also work while the stream is stopped.
// Setting `abandon` gives up an action that waits for a database within seconds.

namespace thalweg::daemon {

// At the stream's next start the destination's rows go and the source's are copied. So is a table that has not been
// copied, because it was missing at the source; rows that the destination has then are no copy's, and refuse it
// (destination_table_not_empty). Fails with unknown_table, missing_table, code_not_accepted or what check_source_table
// and check_same_table say; with resolution_refused where another engine applies.
base::Result<void> ask_for_copy(const control::Delivery& delivery, const control::TableRef& table,
                                const std::atomic<bool>& abandon);
// The table's partitions are as they should be. Fails with unknown_table and resolution_refused.
base::Result<void> accept_partitions(const control::Delivery& delivery, const control::TableRef& table,
                                     const std::atomic<bool>& abandon);

}  // namespace thalweg::daemon
