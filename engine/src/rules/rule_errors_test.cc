#include "rules/rule_errors.h"

#include <gtest/gtest.h>

#include "rules/rule_samples.h"

namespace thalweg::rules {
namespace {

Rule rule_from(Scope scope) {
  return {.name = "long", .schema = {}, .table = {}, .condition = "n between 3 an 5", .scope = scope};
}

std::string refusal(Scope scope) {
  const RuleSets sets{.negative = {}, .positive = std::vector{rule_from(scope)}};
  const auto compiled = TableRules::compile(sets, sample_rule_table());
  EXPECT_FALSE(compiled);
  return compiled ? "" : error_of(compiled.error(), sample_rule_table()).message;
}

std::string failure(Scope scope) {
  const Rule rule = rule_from(scope);
  const Judgement judgement{.decision = Decision::failed, .rule = &rule, .failure = Failure::division_by_zero};
  return error_of(judgement, sample_rule_table(), lcr::FrameKind::insert).message;
}

std::string lack(Scope scope) {
  const Rule rule = rule_from(scope);
  const Judgement judgement{.decision = Decision::undecidable, .rule = &rule};
  return error_of(judgement, sample_rule_table(), lcr::FrameKind::remove).message;
}

void begins(const std::string& message, std::string_view with) { EXPECT_TRUE(message.starts_with(with)) << message; }

TEST(RuleErrorsTest, SayWhoseRuleItIs) {
  begins(refusal(Scope::table), R"(The rule "long" of "public"."orders" is refused at line 1, column 13: expected)");
  begins(refusal(Scope::schema),
         R"(The rule "long" of the schema "public" is refused for "public"."orders" at line 1)");
  begins(refusal(Scope::global), R"(The global rule "long" is refused for "public"."orders" at line 1, column 13:)");
  begins(failure(Scope::table), R"(The rule "long" of "public"."orders" failed on this INSERT: division by zero)");
  begins(failure(Scope::schema),
         R"(The rule "long" of the schema "public" failed on this INSERT of "public"."orders":)");
  begins(failure(Scope::global), R"(The global rule "long" failed on this INSERT of "public"."orders": division by)");
  begins(lack(Scope::global), R"(The global rule "long" needs a value that this DELETE of "public"."orders" did not)");
  begins(perhaps_undecidable(rule_from(Scope::schema), sample_rule_table()).message,
         R"(The rule "long" of the schema "public" needs a value that an UPDATE of "public"."orders" does not bring)");
}

}  // namespace
}  // namespace thalweg::rules
