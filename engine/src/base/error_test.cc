#include "base/error.h"

#include <gtest/gtest.h>

namespace thalweg::base {
namespace {

TEST(Error, CatalogueTellsNameClassTitleAndCure) {
  EXPECT_EQ(name_of(ErrorCode::slot_lost), "slot_lost");
  EXPECT_EQ(class_of(ErrorCode::slot_lost), ErrorClass::operator_action);
  EXPECT_EQ(name_of(class_of(ErrorCode::corrupt_frame)), "corruption");
  EXPECT_EQ(name_of(class_of(ErrorCode::connection_lost)), "transient");
  EXPECT_EQ(title_of(ErrorCode::disk_full), "No space is left on the disk");
  EXPECT_FALSE(cure_of(ErrorCode::wal_level_too_low).empty());
}

TEST(Error, CodesAreFoundByName) {
  EXPECT_EQ(error_code_named("slot_lost"), ErrorCode::slot_lost);
  EXPECT_EQ(error_code_named("address_not_allowed"), ErrorCode::address_not_allowed);
  EXPECT_EQ(error_code_named("wal_level_too_low"), ErrorCode::wal_level_too_low);
  EXPECT_EQ(error_code_named("peer_not_ready"), std::nullopt);
  EXPECT_EQ(error_code_named("zzz"), std::nullopt);
}

TEST(Error, TheSideIsTheErrorsOrElseItsCodes) {
  EXPECT_EQ(side_of(fail(ErrorCode::link_lost, "").error()), ErrorSide::link);
  EXPECT_EQ(side_of(fail(ErrorCode::disk_full, "").error()), ErrorSide::engine);
  EXPECT_EQ(side_of(fail(ErrorCode::disk_full, "", ErrorSide::source).error()), ErrorSide::source);
  EXPECT_EQ(side_of(fail(ErrorCode::connection_lost, "").error()), ErrorSide::unknown);
  for (ErrorSide side :
       {ErrorSide::unknown, ErrorSide::source, ErrorSide::destination, ErrorSide::link, ErrorSide::engine}) {
    EXPECT_EQ(error_side_named(name_of(side)), side);
  }
  EXPECT_EQ(error_side_named("above"), std::nullopt);
}

TEST(Error, TheOperationHasItsNameInSql) {
  EXPECT_EQ(name_of(RowOperation::remove), "DELETE");
  for (const auto operation :
       {RowOperation::unknown, RowOperation::insert, RowOperation::update, RowOperation::remove}) {
    EXPECT_EQ(row_operation_named(name_of(operation)), operation);
  }
  EXPECT_EQ(row_operation_named("TRUNCATE"), std::nullopt);
}

TEST(Error, WhatMayShowRowsIsNotForEverybody) {
  Error error = fail(ErrorCode::database_error, "invalid input: \"secret\"").error();
  EXPECT_EQ(message_without_rows(error), error.message);
  error.may_show_rows = true;
  error.sqlstate = "22P02";
  EXPECT_EQ(message_without_rows(error),
            std::string(title_of(ErrorCode::database_error)) + "; the server's SQLSTATE: 22P02");
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorCode::invalid_request, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  THALWEG_TRY(half(n));
  THALWEG_ASSIGN(const int once, half(n));
  return half(once);
}

TEST(Error, MacrosPassFailuresOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code, ErrorCode::invalid_request);
  EXPECT_EQ(quarter(3).error().message, "odd");
}

}  // namespace
}  // namespace thalweg::base
