#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Steps that change a table's columns before anybody but the capture sees them (docs/decisions/transformations.md).

namespace thalweg::transform {

enum class MaskKind : uint8_t {
  null,
  constant,
  partial,  // some of the first and the last characters, an asterisk for each of the others
};

struct Mask {
  MaskKind kind = MaskKind::null;
  std::string value;        // of constant, as PostgreSQL writes a value of the column's type
  uint32_t keep_first = 0;  // characters; of partial
  uint32_t keep_last = 0;
  bool operator==(const Mask&) const = default;
};

enum class StepKind : uint8_t { drop_column, rename_column, mask_column };

struct Step {
  StepKind kind = StepKind::drop_column;
  std::string column;  // as the steps before this one have left its name
  std::string to;      // of rename_column
  Mask mask;           // of mask_column
  bool operator==(const Step&) const = default;
};

using Steps = std::vector<Step>;

}  // namespace thalweg::transform
