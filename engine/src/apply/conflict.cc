#include "apply/conflict.h"

#include <array>

namespace thalweg::apply {

namespace {

using lcr::FrameKind;

constexpr std::string_view kForeignKeyViolation = "23503";
constexpr std::string_view kUniqueViolation = "23505";

constexpr std::array<std::string_view, 11> kActions = {"error",   "discard", "overwrite", "maximum",
                                                       "minimum", "latest",  "priority",  "delta",
                                                       "append",  "merge",   "expression"};

}  // namespace

std::string_view name_of(ConflictAction action) { return kActions[static_cast<size_t>(action)]; }

std::optional<ConflictKind> conflict_of(const FailedChange& change) {
  const bool inserts = change.operation == FrameKind::insert;
  const bool updates = change.operation == FrameKind::update;
  if (change.missing_row && change.differs) {
    return updates ? ConflictKind::update_origin_differs : ConflictKind::delete_origin_differs;
  }
  if (change.missing_row) return updates ? ConflictKind::update_missing : ConflictKind::delete_missing;
  if (change.sqlstate == kUniqueViolation && inserts) return ConflictKind::insert_exists;
  if (change.sqlstate == kUniqueViolation && updates) return ConflictKind::update_exists;
  if (change.sqlstate == kForeignKeyViolation && (inserts || updates) && !change.is_parent) {
    return ConflictKind::foreign_key_missing;
  }
  return std::nullopt;
}

}  // namespace thalweg::apply
