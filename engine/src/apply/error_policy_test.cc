#include "apply/error_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace thalweg::apply {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;

base::Error failure(ErrorCode code, std::string sqlstate = "", std::string table = "") {
  base::Error error = base::fail(code, "told by the test").error();
  error.sqlstate = std::move(sqlstate);
  error.table = std::move(table);
  return error;
}

ErrorAction action(const ErrorPolicies& policies, const base::Error& error) {
  return decide(policies, error, 0).action;
}

TEST(ErrorPolicies, WithoutOneTheParameterDecides) {
  const base::Error error = failure(ErrorCode::apply_failed, "23503");
  EXPECT_EQ(action({.entries = {}, .disable_on_error = true}, error), ErrorAction::stop);
  EXPECT_EQ(action({.entries = {}, .disable_on_error = false}, error), ErrorAction::park);
  const ErrorPolicies others{.entries = {{.error = "42", .action = ErrorAction::park}}, .disable_on_error = true};
  EXPECT_EQ(action(others, error), ErrorAction::stop);
}

TEST(ErrorPolicies, AnEntryNamesAnSqlstateItsClassOrACode) {
  const auto parks = [](const std::string& named, const base::Error& error) {
    return action({.entries = {{.error = named, .action = ErrorAction::park}}}, error) == ErrorAction::park;
  };
  const base::Error duplicate = failure(ErrorCode::apply_conflict, "23505");
  EXPECT_TRUE(parks("23505", duplicate));
  EXPECT_TRUE(parks("23", duplicate));
  EXPECT_TRUE(parks("apply_conflict", duplicate));
  EXPECT_TRUE(parks("", duplicate));
  EXPECT_FALSE(parks("23503", duplicate));
  EXPECT_FALSE(parks("22", duplicate));
  EXPECT_FALSE(parks("apply_failed", duplicate));
  const base::Error missing = failure(ErrorCode::apply_conflict);
  EXPECT_TRUE(parks("apply_conflict", missing));
  EXPECT_FALSE(parks("23", missing)) << "no SQLSTATE, no class";
}

TEST(ErrorPolicies, TheFirstThatMatchesDecides) {
  const ErrorPolicies policies{.entries = {{.error = "23", .table = "\"s\".\"a\"", .action = ErrorAction::park},
                                           {.error = "23505", .action = ErrorAction::stop},
                                           {.error = "23", .action = ErrorAction::park}}};
  EXPECT_EQ(action(policies, failure(ErrorCode::apply_conflict, "23505", "\"s\".\"a\"")), ErrorAction::park);
  EXPECT_EQ(action(policies, failure(ErrorCode::apply_conflict, "23505", "\"s\".\"b\"")), ErrorAction::stop);
  EXPECT_EQ(action(policies, failure(ErrorCode::apply_conflict, "23505")), ErrorAction::stop) << "of no table";
  EXPECT_EQ(action(policies, failure(ErrorCode::apply_failed, "23502", "\"s\".\"b\"")), ErrorAction::park);
}

TEST(ErrorPolicies, ARetryEndsWithWhatFollows) {
  const ErrorPolicies policies{
      .entries = {{.action = ErrorAction::retry, .times = 2, .delay = 7s, .after_retries = ErrorAction::park}}};
  const base::Error error = failure(ErrorCode::apply_failed, "23503");
  EXPECT_EQ(decide(policies, error, 0).action, ErrorAction::retry);
  EXPECT_EQ(decide(policies, error, 1).delay, 7s);
  EXPECT_EQ(decide(policies, error, 2).action, ErrorAction::park);
}

// Waiting retries hear only of policies that are new.
TEST(ErrorPolicies, TheSameAgainIsNoChange) {
  LiveErrorPolicies live;
  const ErrorPolicies policies{.entries = {{.action = ErrorAction::park}}};
  live.set(policies);
  const uint64_t changes = live.changes();
  live.set(policies);
  EXPECT_EQ(live.changes(), changes);
  EXPECT_EQ(live.decide(failure(ErrorCode::apply_failed), 0).action, ErrorAction::park);
  live.set({});
  EXPECT_EQ(live.changes(), changes + 1);
  EXPECT_EQ(live.decide(failure(ErrorCode::apply_failed), 0).action, ErrorAction::stop);
}

TEST(RowDecisions, TheFirstHandlerOfItsKindAndTableDecides) {
  const ErrorPolicies policies{
      .conflict_handlers = {
          {.kind = ConflictKind::insert_exists, .table = "\"public\".\"orders\"", .action = ConflictAction::overwrite},
          {.kind = ConflictKind::insert_exists, .action = ConflictAction::discard},
      }};
  const auto of = [&](ConflictKind kind, const std::string& table) {
    return decide_row(policies, kind, failure(ErrorCode::apply_conflict, "23505", table), 0).action;
  };
  EXPECT_EQ(of(ConflictKind::insert_exists, "\"public\".\"orders\""), ConflictAction::overwrite);
  EXPECT_EQ(of(ConflictKind::insert_exists, "\"public\".\"lines\""), ConflictAction::discard);
  EXPECT_EQ(of(ConflictKind::update_exists, "\"public\".\"lines\""), ConflictAction::error);
  EXPECT_EQ(decide_row(policies, std::nullopt, failure(ErrorCode::apply_failed, "23514"), 0), RowDecision{});
}

TEST(RowDecisions, APolicyMaySkipARowButNotATransaction) {
  const ErrorPolicies policies{.entries = {{.error = "23514", .action = ErrorAction::skip}}, .disable_on_error = false};
  const base::Error check = failure(ErrorCode::apply_failed, "23514");
  EXPECT_EQ(decide_row(policies, std::nullopt, check, 0), (RowDecision{.skips = true}));
  EXPECT_EQ(action(policies, check), ErrorAction::park) << "disable_on_error decides";
  EXPECT_FALSE(decide_row(policies, std::nullopt, failure(ErrorCode::apply_failed, "22001"), 0).goes_on());
}

TEST(RowDecisions, ASkipMayFollowRetries) {
  const ErrorPolicies policies{
      .entries = {{.action = ErrorAction::retry, .times = 2, .after_retries = ErrorAction::skip}}};
  const base::Error error = failure(ErrorCode::apply_failed, "23514");
  EXPECT_FALSE(decide_row(policies, std::nullopt, error, 1).goes_on());
  EXPECT_EQ(decide(policies, error, 1).action, ErrorAction::retry);
  EXPECT_EQ(decide_row(policies, std::nullopt, error, 1), (RowDecision{.retries = true})) << "before error handlers";
  EXPECT_EQ(decide_row(policies, std::nullopt, error, 2), (RowDecision{.skips = true}));
}

}  // namespace
}  // namespace thalweg::apply
