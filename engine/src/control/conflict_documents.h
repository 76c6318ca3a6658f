#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/conflict.h"

// The conflict log in JSON (engine/contract/control-api.md).

namespace thalweg::control {

// The body of a search. Fails with invalid_request.
base::Result<telemetry::ConflictPart> parse_conflict_part(std::string_view body);
nlohmann::json conflicts_document(const telemetry::LoggedConflicts& page);
nlohmann::json conflict_counts_document(const std::vector<telemetry::LoggedCount>& counts);

}  // namespace thalweg::control
