#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lcr/frame.h"
#include "telemetry/conflict.h"

// Conflicts: changes that other writers of the destination have made impossible (docs/decisions/conflicts.md).

namespace thalweg::apply {

using telemetry::ConflictKind;

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

std::string_view name_of(ConflictAction action);

// Immutable.
struct ConflictHandler {
  ConflictKind kind = ConflictKind::insert_exists;
  std::string table = {};  // schema-qualified and quoted, as errors name it; empty: any
  ConflictAction action = ConflictAction::error;
  std::vector<std::string> columns = {};  // with a table: the group that it decides about; empty: all others
  std::string by = {};          // of maximum, minimum, latest, priority: the column; empty: the time of the commit
  bool tie_overwrites = false;  // of these: the source's row wins where both are the same
  std::vector<std::string> order = {};  // of priority: values of the column as text, the best first
  std::string expression = {};          // SQL over the rows `new`, `old` and `t`
  bool operator==(const ConflictHandler&) const = default;
};

// The statement of a change of one row, and how it failed.
struct FailedChange {
  lcr::FrameKind operation = lcr::FrameKind::insert;
  bool missing_row = false;        // it found no row
  bool differs = false;            // for it has other values than at the source
  std::string_view sqlstate = {};  // else the server's
  bool is_parent = false;          // the foreign key that refused it is another table's
};

// The kind of the conflict; none for an error that is no conflict.
std::optional<ConflictKind> conflict_of(const FailedChange& change);

}  // namespace thalweg::apply
