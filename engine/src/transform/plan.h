#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "transform/step.h"

// Steps worked out for one version of a table.

namespace thalweg::transform {

struct SourceColumn {
  std::string name;
  base::TypeId type;
  int32_t modifier = -1;  // pg_attribute.atttypmod
  bool is_key = false;    // rows are found by it
};

// A column that the source does not have.
struct AddedColumn {
  base::TypeId type;
  std::string type_name;  // as SQL
  std::string value;      // of every row
};

// A column as it is sent.
struct SentColumn {
  size_t source = 0;  // its place among the source's columns, unless it is added
  std::string name;
  std::optional<Mask> mask = {};
  std::optional<AddedColumn> added = {};
};

// The columns that are left, in the source's order, and behind them those that are added. Fails with
// transformation_refused, which names `table`: a step's column is not there, a name is taken, a key would not identify
// rows any more, or no column is left.
base::Result<std::vector<SentColumn>> plan(const Steps& steps, std::span<const SourceColumn> columns,
                                           const std::string& table);

// The type's values are text of any length, and a row brings them as their characters.
bool is_text(base::TypeId type);

}  // namespace thalweg::transform
