#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

// The parameter conflict_detection of the desired document: the columns in which a row of the destination has to be as
// the source's was before the change (docs/decisions/conflicts.md).

namespace thalweg::control {

// Immutable once parsed.
struct ComparedTableDefinition {
  std::string schema = {};  // with `table`; both empty: any table
  std::string table = {};
  std::vector<std::string> columns = {};  // each once; empty: all
  bool operator==(const ComparedTableDefinition&) const = default;
};

// The first that matches a table decides. No two are of the same table.
using ConflictDetectionDefinition = std::vector<ComparedTableDefinition>;

// Fails with invalid_request that names the place below `pointer`.
base::Result<ConflictDetectionDefinition> read_conflict_detection(const nlohmann::json& value,
                                                                  const std::string& pointer);
void to_json(nlohmann::json& out, const ComparedTableDefinition& compared);

}  // namespace thalweg::control
