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

enum class TransformationType : uint8_t {
  drop_column,
  rename_column,
  mask_column,
  keep_columns,
  add_column,
  cast_column,
};
enum class MaskWith : uint8_t { null, constant, partial, hash, digits };

struct TransformationDefinition {
  TransformationType type = TransformationType::drop_column;
  std::string column;              // none of keep_columns
  std::string to;                  // of rename_column
  MaskWith with = MaskWith::null;  // of mask_column
  std::string value;               // of a constant, and of add_column
  uint32_t keep_first = 0;         // characters; of partial
  uint32_t keep_last = 0;
  std::vector<std::string> columns = {};  // of keep_columns
  std::string data_type = {};             // of add_column and cast_column
  std::string expression = {};            // of add_column, instead of the value; empty: there is the value
  bool operator==(const TransformationDefinition&) const = default;
};

using Transformations = std::vector<TransformationDefinition>;  // in the order in which they are carried out

// The member "transformations" of a table; empty where it has none. Fails with invalid_request.
base::Result<Transformations> read_transformations(ObjectReader& table);
nlohmann::json to_json(const Transformations& transformations);
bool needs_key(const Transformations& transformations);

// The member "mask_key" of a stream, the key of all its keyed masks: as secret as a password. Empty where it has none;
// an error where it `is_needed`. The error never quotes it.
std::string read_mask_key(ObjectReader& stream, bool is_needed);

}  // namespace thalweg::control
