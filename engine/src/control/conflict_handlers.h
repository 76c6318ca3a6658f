#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/conflict.h"

// The parameter conflict_handlers of the desired document: what is done with single changes that conflict with rows of
// the destination (docs/decisions/conflicts.md).

namespace thalweg::control {

enum class HandlerAction : uint8_t {
  error,
  discard,
  overwrite,
  maximum,
  minimum,
  latest,
  priority,
  delta,
  append,
  merge,
  expression,
};

std::string_view name_of(HandlerAction action);

// Immutable once parsed.
struct ConflictHandlerDefinition {
  telemetry::ConflictKind kind = telemetry::ConflictKind::insert_exists;
  std::string schema;  // with `table`; both empty: any table
  std::string table;
  HandlerAction action = HandlerAction::error;  // overwrite: of kinds that can
  std::vector<std::string> columns = {};        // with a table: the group that it decides about; empty: all others
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
