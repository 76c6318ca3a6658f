#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "control/desired_state.h"
#include "control/managed_streams.h"

// The error queue at a stream's destination, over a connection of its own: for when no apply runs. Each fails with what
// connecting fails with, and where another engine applies with unknown_error_transaction.

namespace thalweg::daemon {

base::Result<std::vector<control::ParkedTransactionView>> parked_errors(const control::StreamDefinition& definition);
base::Result<void> execute_parked_error(const control::StreamDefinition& definition, int64_t error_id);
base::Result<void> remove_parked_error(const control::StreamDefinition& definition, int64_t error_id);

}  // namespace thalweg::daemon
