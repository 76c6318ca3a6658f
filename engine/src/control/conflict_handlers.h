#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/conflict.h"
#include "telemetry/conflict_action.h"

// The parameter conflict_handlers of the desired document: what is done with single changes that conflict with rows of
// the destination (docs/decisions/conflicts.md).

namespace thalweg::control {

using telemetry::ConflictAction;

// Immutable once parsed.
struct ConflictHandlerDefinition {
  telemetry::ConflictKind kind = telemetry::ConflictKind::insert_exists;
  std::string schema;  // with `table`; both empty: any table
  std::string table;
  ConflictAction action = ConflictAction::error;  // overwrite: of kinds that can
  std::vector<std::string> columns = {};          // with a table: the group that it decides about; empty: all others
  std::string by = {};          // of maximum, minimum, latest and priority: a column; empty: the time of the commit
  bool tie_overwrites = false;  // of these
  std::vector<std::string> order = {};  // of priority
  std::string expression = {};          // of one column
  bool operator==(const ConflictHandlerDefinition&) const = default;
};

using ConflictHandlerDefinitions = std::vector<ConflictHandlerDefinition>;

// Fails with invalid_request that names the place below `pointer`.
base::Result<ConflictHandlerDefinitions> read_conflict_handlers(const nlohmann::json& value,
                                                                const std::string& pointer);
void to_json(nlohmann::json& out, const ConflictHandlerDefinition& handler);

}  // namespace thalweg::control
