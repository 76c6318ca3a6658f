#include "rules/source_filter.h"

#include <gtest/gtest.h>

#include "rules/sample_columns.h"

namespace thalweg::rules {
namespace {

using Place = SourceFilter::Place;
using Set = std::optional<std::vector<Rule>>;

Rule rule(std::string condition, uint8_t kinds = kEveryKind, bool subset = false) {
  return {.name = "r", .schema = {}, .table = {}, .kinds = kinds, .condition = std::move(condition), .subset = subset};
}

// The expression, or why there is none; "": every change passes.
std::string shown(const SourceFilter& filter) {
  if (filter.place == Place::engine) return "engine: " + filter.reason;
  return filter.text;
}

std::string filter(const Set& negative, const Set& positive, Kinds kind = kInsert,
                   RuleTable table = sample_columns_table()) {
  return shown(source_filter({.negative = negative, .positive = positive}, table, kind, "here"));
}

std::string condition(const std::string& text, Kinds kind = kInsert) {
  return filter({}, std::vector{rule(text)}, kind);
}

bool is_asked(const std::string& text, Kinds kind = kInsert) { return !condition(text, kind).starts_with("engine: "); }

TEST(SourceFilterTest, WritesColumnsByNameAndConstantsInTheirBinaryForm) {
  EXPECT_EQ(condition("i = 7"),
            "\"rules\" \"t\" ((\"i\" 23 0)) (true (call int4eq (column 0) (value 23 \"00000007\")))");
  EXPECT_EQ(condition("x = 'a\"b'"),
            "\"rules\" \"t\" ((\"x\" 25 0)) (true (call texteq (column 0) (value 25 \"612262\")))");
  EXPECT_EQ(condition("i IN (1, 2) AND NOT b"),
            "\"rules\" \"t\" ((\"i\" 23 0) (\"b\" 16 0)) (true (and (or (call int4eq (column 0) (value 23 "
            "\"00000001\")) (call int4eq (column 0) (value 23 \"00000002\"))) (not (column 1))))");
  EXPECT_EQ(condition("i IS NOT NULL"), "\"rules\" \"t\" ((\"i\" 23 0)) (true (not (null (column 0))))");
  EXPECT_EQ(condition("source = 'here' AND i = 7"),
            "\"rules\" \"t\" ((\"i\" 23 0) (\"source\" 0 0)) (true (call int4eq (column 0) (value 23 \"00000007\")))");
  EXPECT_EQ(condition("i IS DISTINCT FROM NULL::int"),
            "\"rules\" \"t\" ((\"i\" 23 0)) (true (distinct int4eq (column 0) (value 23)))");
}

TEST(SourceFilterTest, AsksWhatCannotFailAndIsTheSameThere) {
  for (const char* text : {"b",
                           "s < 3",
                           "i = l",
                           "l BETWEEN -5 AND 5",
                           "f >= 1.5",
                           "g <> f",
                           "m > i",
                           "n NOT IN (1, 2.5, NULL)",
                           "x <> 'a'",
                           "v = 'abc'",
                           "c = 'abc'",
                           "y = '\\x00'",
                           "u > '00000000-0000-0000-0000-000000000000'",
                           "d >= '2024-02-29'",
                           "h < '12:30'",
                           "p = '2000-01-01'",
                           "z <= '2000-01-01 00:00+00'",
                           "x LIKE 'a\\%b_c%'",
                           "v NOT LIKE 'it'",
                           "x COLLATE \"C\" < 'm'",
                           "(i = 1) IS UNKNOWN",
                           "i IS NOT DISTINCT FROM j",
                           "e IS NULL",
                           "w IS NOT NULL",
                           "i = 1 OR 2 > 1",
                           "source = 'here'",
                           "table = 't' AND operation = 'INSERT'",
                           "new.i > 2 + 3 * 4"}) {
    EXPECT_TRUE(is_asked(text)) << text << ": " << condition(text);
  }
}

TEST(SourceFilterTest, AsksNothingElse) {
  EXPECT_EQ(condition("i + 1 = 2"), "engine: the rule r computes (int4pl)");
  EXPECT_EQ(condition("lower(x COLLATE \"C\") = 'a'"), "engine: the rule r computes (lower)");
  EXPECT_EQ(condition("1 / i = 1"), "engine: the rule r computes (int4div)");
  EXPECT_EQ(condition("x LIKE '%a'"), "engine: the rule r has a pattern with more than a % at its end");
  EXPECT_EQ(condition("x LIKE v"), "engine: the rule r has a pattern with more than a % at its end");
  EXPECT_EQ(condition("x LIKE 'a\\'"), "engine: the rule r has a pattern with more than a % at its end");
  EXPECT_EQ(condition("x LIKE 'a\\%'").substr(0, 7), "\"rules\"");
  EXPECT_EQ(condition("coalesce(i, 1) = 1"), "engine: the rule r chooses between values");
  EXPECT_EQ(condition("CASE WHEN b THEN i = 1 ELSE j = 2 END"), "engine: the rule r chooses between values");
  EXPECT_EQ(condition("i + 1 BETWEEN 1 AND 2"), "engine: the rule r compares a computed value");
  EXPECT_EQ(condition("w = '1 day'"), "engine: the rule r computes (interval_eq)");
  EXPECT_EQ(condition("e = 'low'"), "engine: the rule r computes (enum_eq)");
  EXPECT_EQ(condition("d < p"), "engine: the rule r computes (date_lt_timestamp)");
  EXPECT_EQ(condition("x::int = 1"), "engine: the rule r computes (int4in)");
  EXPECT_EQ(condition("missing = 1"), "engine: the rule r is refused");
  EXPECT_EQ(condition("tag IS NULL"), "engine: the rule r reads tag");
  EXPECT_EQ(condition("commit_time > '2026-01-01 00:00Z'"), "engine: the rule r reads commit_time");
}

TEST(SourceFilterTest, TakesOldValuesOfAnInsertForNull) {
  EXPECT_EQ(condition("old.i = 1"), "\"rules\" \"t\" () (true (value 16))");
  EXPECT_EQ(condition("old.i IS NULL AND i = 1").substr(0, 27), "\"rules\" \"t\" ((\"i\" 23 0)) (t");
  EXPECT_EQ(condition("old.i = 1", kUpdate), "engine: the rule r reads old values");
  EXPECT_TRUE(is_asked("new.i = 1", kUpdate));
}

TEST(SourceFilterTest, PutsBothSetsTogether) {
  const std::string i = "\"rules\" \"t\" ((\"i\" 23 0)) ";
  const std::string one = "(true (call int4eq (column 0) (value 23 \"00000001\")))";
  const std::string two = "(true (call int4eq (column 0) (value 23 \"00000002\")))";
  EXPECT_EQ(filter({}, {}), "");
  EXPECT_EQ(filter(std::vector<Rule>{}, {}), "");
  EXPECT_EQ(filter({}, std::vector<Rule>{}), "\"rules\" \"t\" () (value 16 \"00\")");
  EXPECT_EQ(filter({}, std::vector{rule("")}), "");
  EXPECT_EQ(filter({}, std::vector{rule("", kUpdate)}), "\"rules\" \"t\" () (value 16 \"00\")");
  EXPECT_EQ(filter(std::vector{rule("")}, {}), "\"rules\" \"t\" () (value 16 \"00\")");
  EXPECT_EQ(filter(std::vector{rule("i + 1 = 2", kDelete)}, {}), "") << "only rules of the kind count";
  EXPECT_EQ(filter(std::vector{rule("i = 1")}, {}), i + "(not " + one + ")");
  EXPECT_EQ(filter({}, std::vector{rule("i = 1"), rule("i = 2")}), i + "(or " + one + " " + two + ")");
  EXPECT_EQ(filter(std::vector{rule("i = 1")}, std::vector{rule("i = 2")}), i + "(and (not " + one + ") " + two + ")");
  EXPECT_EQ(filter(std::vector{rule("i = 1")}, std::vector{rule("")}), i + "(not " + one + ")");
  EXPECT_TRUE(filter(std::vector{rule("i = 1")}, std::vector{rule("i + 1 = 2")}).starts_with("engine: "));
  EXPECT_TRUE(filter(std::vector{rule("i + 1 = 2")}, std::vector{rule("i = 1")}).starts_with("engine: "));
}

// An update that leaves the subset is a DELETE; an INSERT is none.
TEST(SourceFilterTest, AsksForTheInsertsOfASubsetOnly) {
  const Set subset = std::vector{rule("i = 1", kEveryKind, true)};
  EXPECT_FALSE(filter({}, subset).starts_with("engine: "));
  EXPECT_EQ(filter({}, subset, kUpdate), "engine: an update may bring a row into the subset, or take it out");
  EXPECT_FALSE(filter({}, std::vector<Rule>{}, kUpdate).starts_with("engine: "));
  // The negative set takes rows out, too.
  const Set everything = std::vector{rule("", kEveryKind, true)};
  EXPECT_EQ(filter(std::vector{rule("i = 1")}, everything, kUpdate).substr(0, 6), "engine");
  EXPECT_EQ(filter({}, std::vector{rule("j = 1"), rule("i = 1", kInsert, true)}, kUpdate).substr(0, 6), "engine");
}

TEST(SourceFilterTest, AsksNoPartitionedTableAndNoTextInOtherEncodings) {
  RuleTable table = sample_columns_table();
  table.is_partitioned = true;
  EXPECT_EQ(filter({}, std::vector{rule("i = 1")}, kInsert, table), "engine: the table is partitioned");
  table = sample_columns_table();
  table.is_utf8 = false;
  EXPECT_EQ(filter({}, std::vector{rule("x = 'a'")}, kInsert, table),
            "engine: the rule r has a text, and the source's encoding is not UTF8");
  EXPECT_FALSE(filter({}, std::vector{rule("i = 1")}, kInsert, table).starts_with("engine: "));
}

}  // namespace
}  // namespace thalweg::rules
