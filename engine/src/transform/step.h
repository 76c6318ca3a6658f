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
  hash,     // keyed: equal values stay equal, and nobody without the key finds one from the other
  digits,   // keyed: each digit becomes another one, by the whole value; what is none stays
};

struct Mask {
  MaskKind kind = MaskKind::null;
  std::string value;        // of constant, as PostgreSQL writes a value of the column's type
  uint32_t keep_first = 0;  // characters; of partial
  uint32_t keep_last = 0;
  std::string key = {};  // of the keyed ones; empty where it is only asked whether the mask fits
  uint32_t digits = 64;  // hexadecimal, of hash; plan() leaves as many as the column holds

  bool needs_key() const { return kind == MaskKind::hash || kind == MaskKind::digits; }
  bool operator==(const Mask&) const = default;
};

enum class StepKind : uint8_t { drop_column, rename_column, mask_column, keep_columns, add_column, cast_column };

struct Step {
  StepKind kind = StepKind::drop_column;
  std::string column;                     // as the steps before this one have left its name; none of keep_columns
  std::string to;                         // of rename_column
  Mask mask;                              // of mask_column
  std::vector<std::string> columns = {};  // of keep_columns: the others are dropped
  std::string type = {};                  // of add_column and cast_column, as PostgreSQL writes it
  std::string value = {};                 // of add_column, as PostgreSQL writes a value of the type
  std::string expression = {};            // of add_column, instead of the value; empty: there is the value
  bool operator==(const Step&) const = default;
};

using Steps = std::vector<Step>;

// Columns that the step's expression reads, as the steps before it have left their names. None where it cannot be read.
std::vector<std::string> columns_read(const Step& step);

}  // namespace thalweg::transform
