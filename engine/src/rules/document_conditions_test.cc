#include <gtest/gtest.h>

#include "rules/condition.h"
#include "rules/insert_filter.h"
#include "rules/rule_samples.h"

// Conditions over a jsonb column: what they read, what is refused and where, and how they are written for the source.

namespace thalweg::rules {
namespace {

RuleTable table_with_documents() {
  RuleTable table = sample_rule_table();
  table.columns.push_back({.name = "payload", .type = {3802}, .enum_labels = {}});
  return table;
}

std::string outcome_of(std::string_view text, SampleValue payload) {
  auto condition = Condition::compile(text, table_with_documents());
  if (!condition) return "refused: " + condition.error().message;
  const SampleFrame frame =
      SampleFrame::insert({SampleValue::int4(1), SampleValue::null(), SampleValue::unchanged(), std::move(payload)});
  Scratch scratch;
  const ChangeContext context{.source = "here", .tag = {}, .commit_time = {}};
  const Verdict verdict = condition->evaluate(frame.view(), context, scratch);
  constexpr std::array kOutcomes{"true", "false", "null", "undecidable"};
  return verdict.outcome == Outcome::failed ? std::string(sqlstate_of(verdict.failure))
                                            : kOutcomes[std::to_underlying(verdict.outcome)];
}

constexpr const char* kPayload = R"({"n": 7, "tags": ["a", null, "c\td"], "who": {"name": "größe \ud83d\ude00"}})";

TEST(DocumentConditionsTest, ReadsParts) {
  const std::pair<const char*, const char*> cases[] = {
      {"(payload->>'n')::int = 7", "true"},
      {"(payload->'n')::numeric * 2 = 14", "true"},
      {"payload->'who'->>'name' = 'größe 😀'", "true"},
      {"payload->'tags'->>-1 = 'c\td'", "true"},
      {"payload->'tags'->>1 is null", "true"},
      {"payload->'tags'->1 is null", "false"},
      {"payload->'tags'->3 is null", "true"},
      {"payload->'tags'->-4 is null", "true"},
      {"payload->'missing'->'x' is null", "true"},
      {"payload ? 'who' and not payload ? 'a' and payload->'tags' ? 'a'", "true"},
      {"jsonb_typeof(payload->'tags'->1) = 'null'", "true"},
      {"jsonb_array_length(payload->'tags') = 3", "true"},
      {"jsonb_array_length(payload) = 3", "22023"},
      {"jsonb_array_length(payload->'n') = 3", "22023"},
      {"(payload->'who')::int = 3", "22023"},
      {"(payload->>'who')::int = 3", "22P02"},
      {"payload::text like '{\"n\": 7,%'", "true"},
      {"coalesce(payload->'x', payload->'tags')->>0 = 'a'", "true"},
      {"payload->>label = '7'", "undecidable"},
      {"greatest((payload->>'n')::int, n, 3) = 7", "true"},
      {"least((payload->>'n')::int, n, 3) = 3", "true"},
      {"greatest(n, null::int) is null", "true"},
      {"greatest(label collate \"C\", 'x') = 'x'", "undecidable"},
  };
  const std::string binary = std::string("\1") + kPayload;
  const SampleValue text{.mark = lcr::ValueMark::text, .bytes = kPayload};
  for (const auto& [condition, outcome] : cases) {
    EXPECT_EQ(outcome_of(condition, SampleValue::of(binary)), outcome) << condition;
    EXPECT_EQ(outcome_of(condition, text), outcome) << condition;
  }
  EXPECT_EQ(outcome_of("payload->>'n' = '7'", SampleValue::null()), "null");
  EXPECT_EQ(outcome_of("payload is null", SampleValue::null()), "true");
  EXPECT_EQ(outcome_of("payload->>'n' = '7'", SampleValue::unchanged()), "undecidable");
}

TEST(DocumentConditionsTest, BytesThatAreNoDocumentFail) {
  for (const char* bytes : {"", "\2{}", "\1", "\1{\"n\"", "\1{\"n\": \"\\x\"}", "\1{\"a\": 1 \"n\": 2}", "\1tru"}) {
    EXPECT_EQ(outcome_of("payload->>'n' = '7'", SampleValue::of(bytes)), "XX001") << bytes;
  }
}

TEST(DocumentConditionsTest, RefusesWithThePlace) {
  struct Case {
    const char* text;
    const char* message;
    uint32_t column;
  };
  const Case cases[] = {
      {"payload = payload", "the operator = cannot be used", 9},
      {"payload = '{}'", "the operator = cannot be used", 9},
      {"payload < payload", "the operator < cannot be used", 9},
      {"payload is distinct from payload", "the operator = cannot be used", 9},
      {"payload in (payload)", "the operator = cannot be used", 9},
      {"n = 1 and payload @> '{\"a\": 1}'", "no operator @>", 19},
      {"payload #>> '{a}' = '1'", "no operator #>>", 9},
      {"payload - 'a' is null", "the operator - cannot be used", 9},
      {"payload || payload is null", "the operator || cannot be used", 9},
      {"greatest(payload, payload) is null", "no order", 1},
      {"'{}'::jsonb is null", "no type", 7},
      {"jsonb '{}' is null", "does not fit", 7},
      {"coalesce(payload, '{}') is null", "no constants of type jsonb", 19},
      {"label::jsonb is null", "no type", 8},
      {"payload::date is null", "cannot cast", 1},
      {"payload->>'a' < 'x'", "collation", 15},
      {"payload->>0 < payload->>1", "collation", 13},
  };
  for (const Case& c : cases) {
    const auto condition = Condition::compile(c.text, table_with_documents());
    ASSERT_FALSE(condition) << c.text;
    EXPECT_NE(condition.error().message.find(c.message), std::string::npos)
        << c.text << ": " << condition.error().message;
    EXPECT_EQ(condition.error().column, c.column) << c.text << ": " << condition.error().message;
  }
}

TEST(DocumentConditionsTest, AreWrittenForTheSource) {
  const Rule rule{.name = "r",
                  .schema = {},
                  .table = {},
                  .condition =
                      "(payload->'a'->>-1)::int > 1 and payload ? 'b' or greatest(~n, 2) = 2 and "
                      "least(label, 'x' collate \"C\") = 'x' and overlay(label placing 'x' from 2) ^@ 'y'"};
  const auto filter = insert_filter({.negative = {}, .positive = std::vector{rule}}, table_with_documents(), "here");
  ASSERT_TRUE(filter) << filter.error().error.message;
  EXPECT_EQ(*filter,
            "(((((CAST(((\"payload\" OPERATOR(pg_catalog.->) 'a') OPERATOR(pg_catalog.->>) (-1)) AS integer) "
            "OPERATOR(pg_catalog.>) (1)) AND (\"payload\" OPERATOR(pg_catalog.?) 'b')) OR "
            "((GREATEST((OPERATOR(pg_catalog.~) \"n\"), (2)) OPERATOR(pg_catalog.=) (2)) AND "
            "(LEAST(\"label\", ('x' COLLATE pg_catalog.\"C\")) OPERATOR(pg_catalog.=) 'x') AND "
            "(pg_catalog.\"overlay\"(\"label\", 'x', (2)) OPERATOR(pg_catalog.^@) 'y'))) IS TRUE))");
}

}  // namespace
}  // namespace thalweg::rules
