#include "apply/conflict.h"

#include <string_view>

namespace thalweg::apply {

namespace {

using lcr::FrameKind;

constexpr std::string_view kForeignKeyViolation = "23503";
constexpr std::string_view kUniqueViolation = "23505";

}  // namespace

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
