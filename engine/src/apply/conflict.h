#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lcr/frame.h"
#include "telemetry/conflict.h"
#include "telemetry/conflict_action.h"

// Conflicts: changes that other writers of the destination have made impossible (docs/decisions/conflicts.md).

namespace thalweg::apply {

using telemetry::ConflictAction;
using telemetry::ConflictKind;

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
