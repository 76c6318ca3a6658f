#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// Ways to settle a conflict, in the words of the parameter conflict_handlers (docs/decisions/conflicts.md).

namespace thalweg::telemetry {

enum class ConflictAction : uint8_t {
  error,    // as though there were no handler
  discard,  // leaves the change out
  // An INSERT takes the place of the row with its key, an UPDATE inserts the row that it lacks; where the row has other
  // values than at the source, the change is made all the same.
  overwrite,
  maximum,  // the row with the higher value of a column wins
  minimum,
  latest,      // the row with the later value of a column, or of which the commit is later
  priority,    // the row whose value of a column stands first in a list, such as the sites' names
  delta,       // adds the difference of the source's two values
  append,      // adds the elements of the source's array that the destination's lacks
  merge,       // makes the source's changes of the members of a JSON object
  expression,  // gives a column what an SQL expression over both rows says
};

inline constexpr std::array<std::string_view, 11> kConflictActionNames = {"error",   "discard", "overwrite", "maximum",
                                                                          "minimum", "latest",  "priority",  "delta",
                                                                          "append",  "merge",   "expression"};

constexpr std::string_view name_of(ConflictAction action) { return kConflictActionNames[static_cast<size_t>(action)]; }

}  // namespace thalweg::telemetry
