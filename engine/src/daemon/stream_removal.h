#pragma once

#include <string>

#include "base/error.h"
#include "control/desired_state.h"

namespace thalweg::daemon {

// Removes what the stream has at its source (slot, publication) and at its destination (its rows in schema thalweg;
// the schema with the last stream). The replicated tables stay. Idempotent. Returns what was left behind, with the SQL
// that removes it: always empty without definition.force, which gives up on a side instead of failing.
base::Result<std::string> remove_stream(const control::StreamDefinition& definition);

// The same of one destination only.
base::Result<std::string> remove_destination(const control::StreamDefinition& branch);

}  // namespace thalweg::daemon
