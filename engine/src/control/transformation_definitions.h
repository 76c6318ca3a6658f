#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "control/strict_json.h"

// The transformations of a table in the desired document: what becomes of its columns before its changes leave the
// capture (docs/decisions/transformations.md). Whether they fit their table is for whoever has the table to say.

namespace thalweg::control {

enum class TransformationType : uint8_t { drop_column, rename_column, mask_column };
enum class MaskWith : uint8_t { null, constant, partial };

struct TransformationDefinition {
  TransformationType type = TransformationType::drop_column;
  std::string column;
  std::string to;                  // of rename_column
  MaskWith with = MaskWith::null;  // of mask_column
  std::string value;               // of a constant
  uint32_t keep_first = 0;         // characters; of partial
  uint32_t keep_last = 0;
  bool operator==(const TransformationDefinition&) const = default;
};

using Transformations = std::vector<TransformationDefinition>;  // in the order in which they are carried out

// The member "transformations" of a table; empty where it has none. Fails with invalid_request.
base::Result<Transformations> read_transformations(ObjectReader& table);
nlohmann::json to_json(const Transformations& transformations);

}  // namespace thalweg::control
