#pragma once

#include <string>

#include "base/error.h"
#include "control/desired_state.h"
#include "daemon/database_work.h"

namespace thalweg::daemon {

// Both take whatever `work` gives up as a failure, and with definition.force a lock that somebody holds for seconds.
//
// Removes what the stream has at its source (slot, publications: where this engine captures) and at its destinations
// (its rows in schema thalweg; the schema with the last stream). The replicated tables stay. Idempotent. Returns what
// was left behind, with the SQL that removes it: always empty without definition.force, which gives up on a side
// instead of failing.
base::Result<std::string> remove_stream(const control::StreamDefinition& definition, const DatabaseWork& work);

// Removes in the same way what the stream has at one destination.
base::Result<std::string> remove_destination(const control::Delivery& delivery, const DatabaseWork& work);

}  // namespace thalweg::daemon
