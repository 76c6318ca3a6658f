#pragma once

#include <optional>
#include <string>
#include <string_view>

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
};

// Immutable.
struct ConflictHandler {
  ConflictKind kind = ConflictKind::insert_exists;
  std::string table = {};  // schema-qualified and quoted, as errors name it; empty: any
  ConflictAction action = ConflictAction::error;
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

// None: an error that is no conflict.
std::optional<ConflictKind> conflict_of(const FailedChange& change);

}  // namespace thalweg::apply
