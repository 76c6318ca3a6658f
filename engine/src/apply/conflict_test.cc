#include "apply/conflict.h"

#include <gtest/gtest.h>

namespace thalweg::apply {
namespace {

using lcr::FrameKind;

TEST(ConflictKinds, AreThoseOfPostgreSql) {
  EXPECT_EQ(conflict_of({.operation = FrameKind::insert, .sqlstate = "23505"}), ConflictKind::insert_exists);
  EXPECT_EQ(conflict_of({.operation = FrameKind::update, .sqlstate = "23505"}), ConflictKind::update_exists);
  EXPECT_EQ(conflict_of({.operation = FrameKind::update, .missing_row = true}), ConflictKind::update_missing);
  EXPECT_EQ(conflict_of({.operation = FrameKind::remove, .missing_row = true}), ConflictKind::delete_missing);
  EXPECT_EQ(conflict_of({.operation = FrameKind::insert, .sqlstate = "23503"}), ConflictKind::foreign_key_missing);
  EXPECT_EQ(conflict_of({.operation = FrameKind::update, .sqlstate = "23503"}), ConflictKind::foreign_key_missing);
}

TEST(ConflictKinds, AParentThatIsStillReferencedIsNone) {
  EXPECT_EQ(conflict_of({.operation = FrameKind::remove, .sqlstate = "23503", .is_parent = true}), std::nullopt);
  EXPECT_EQ(conflict_of({.operation = FrameKind::update, .sqlstate = "23503", .is_parent = true}), std::nullopt);
}

TEST(ConflictKinds, OtherErrorsAreNone) {
  for (const char* sqlstate : {"23514", "22001", "23P01", "P0001", ""}) {
    EXPECT_EQ(conflict_of({.operation = FrameKind::insert, .sqlstate = sqlstate}), std::nullopt) << sqlstate;
  }
}

}  // namespace
}  // namespace thalweg::apply
