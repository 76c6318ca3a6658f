#include "rules/condition.h"

#include <gtest/gtest.h>

#include "rules/rule_samples.h"

namespace thalweg::rules {
namespace {

const ChangeContext kContext{.source = "here", .tag = {}, .commit_time = base::UnixMicros{1'700'000'000'000'000}};

std::string outcome_of(std::string_view text, const lcr::FrameView& frame, const ChangeContext& context = kContext) {
  auto condition = Condition::compile(text, sample_rule_table());
  if (!condition) return "refused: " + condition.error().message;
  Scratch scratch;
  const Verdict verdict = condition->evaluate(frame, context, scratch);
  switch (verdict.outcome) {
    case Outcome::is_true:
      return "true";
    case Outcome::is_false:
      return "false";
    case Outcome::is_null:
      return "null";
    case Outcome::undecidable:
      return "undecidable";
    case Outcome::failed:
      return std::string(sqlstate_of(verdict.failure));
  }
  return "?";
}

SampleRow row(int32_t id, SampleValue n, std::string label) {
  return {SampleValue::int4(id), std::move(n), SampleValue::of(std::move(label))};
}

std::string outcome_before(std::string_view text, const SampleFrame& frame, const RuleTable& table) {
  auto condition = Condition::compile(text, table);
  if (!condition) return "refused: " + condition.error().message;
  Scratch scratch;
  const Verdict verdict = condition->evaluate(frame.view(), kContext, scratch, Row::before);
  return verdict.outcome == Outcome::is_true       ? "true"
         : verdict.outcome == Outcome::is_false    ? "false"
         : verdict.outcome == Outcome::undecidable ? "undecidable"
                                                   : "another";
}

TEST(ConditionTest, ReadsPlainColumnsOfTheRowBeforeAnUpdate) {
  const SampleRow before = row(1, SampleValue::int4(5), "before");
  const SampleRow after = row(1, SampleValue::int4(7), "after");
  const SampleRow key{SampleValue::int4(1), SampleValue::null(), SampleValue::null()};
  const SampleFrame update(lcr::FrameKind::update, 0, std::nullopt, after);
  const SampleFrame full_update(lcr::FrameKind::update, lcr::kOldRow, before, after);
  const SampleFrame key_update(lcr::FrameKind::update, lcr::kOldKey, key, row(2, SampleValue::int4(7), "after"));
  const RuleTable table = sample_rule_table();
  EXPECT_EQ(outcome_before("n = 5 and new.n = 7 and label = 'before'", full_update, table), "true");
  EXPECT_EQ(outcome_before("n = 7", full_update, table), "false");
  EXPECT_EQ(outcome_before("n = 7", update, table), "undecidable");
  EXPECT_EQ(outcome_before("id = 1", update, table), "true");
  EXPECT_EQ(outcome_before("id = 1", key_update, table), "true");
  EXPECT_EQ(outcome_before("id = 1 or n = 7", key_update, table), "true");
  EXPECT_EQ(outcome_before("n = 7", key_update, table), "undecidable");
}

// The root's REPLICA IDENTITY FULL makes PostgreSQL call an old row whole that a partition has sent the key of.
TEST(ConditionTest, BelievesNoOldRowOfAPartitionedTable) {
  RuleTable table = sample_rule_table();
  table.replica_identity = 'f';
  table.is_partitioned = true;
  table.columns[0].is_key = false;  // as its catalogue's reader does with FULL
  const SampleRow key{SampleValue::int4(1), SampleValue::null(), SampleValue::null()};
  const SampleFrame remove(lcr::FrameKind::remove, lcr::kOldRow, key, std::nullopt);
  const SampleFrame update(lcr::FrameKind::update, lcr::kOldRow, key, row(1, SampleValue::int4(7), "after"));
  EXPECT_EQ(outcome_before("n is null", update, table), "undecidable");
  auto condition = Condition::compile("n is null", table);
  ASSERT_TRUE(condition);
  Scratch scratch;
  EXPECT_EQ(condition->evaluate(remove.view(), kContext, scratch).outcome, Outcome::undecidable);
  EXPECT_TRUE(condition->needs_old_row(true));
  EXPECT_FALSE(condition->needs_old_row(false));
}

TEST(ConditionTest, ReadsOldNewAndNewestValues) {
  const SampleRow before = row(1, SampleValue::int4(5), "before");
  const SampleRow after = row(1, SampleValue::int4(7), "after");
  const SampleRow key{SampleValue::int4(1), SampleValue::null(), SampleValue::null()};
  const SampleFrame insert = SampleFrame::insert(after);
  const SampleFrame update(lcr::FrameKind::update, 0, std::nullopt, after);
  const SampleFrame full_update(lcr::FrameKind::update, lcr::kOldRow, before, after);
  const SampleFrame key_update(lcr::FrameKind::update, lcr::kOldKey, key, row(2, SampleValue::int4(7), "after"));
  const SampleFrame remove(lcr::FrameKind::remove, lcr::kOldKey, key, std::nullopt);
  const SampleFrame full_remove(lcr::FrameKind::remove, lcr::kOldRow, before, std::nullopt);
  struct Case {
    const char* text;
    const SampleFrame& frame;
    const char* outcome;
  };
  const Case cases[] = {
      {"n = 7", insert, "true"},
      {"old.n is null", insert, "true"},
      {"new.n = 7", update, "true"},
      {"old.n = 5", update, "undecidable"},
      {"old.id = 1", update, "true"},  // no key came, so it did not change
      {"old.id = 1 and new.id = 2", key_update, "true"},
      {"old.n = 5", key_update, "undecidable"},
      {"old.n < new.n", full_update, "true"},
      {"label = 'after'", full_update, "true"},
      {"id = 1", remove, "true"},
      {"n = 5", remove, "undecidable"},
      {"n = 5 and false", remove, "false"},
      {"id = 2 and n = 5", remove, "false"},
      {"id = 1 or n = 5", remove, "true"},
      {"n = 5 and label = 'before'", full_remove, "true"},
      {"new.n is null", full_remove, "true"},
      {"operation = 'DELETE' and table = 'orders' and schema = 'public'", remove, "true"},
      {"tag is null and source = 'here'", insert, "true"},
      {"commit_time > timestamptz '2023-11-14 00:00:00Z'", insert, "true"},
  };
  for (const Case& c : cases) EXPECT_EQ(outcome_of(c.text, c.frame.view()), c.outcome) << c.text;
  const ChangeContext unknown{.source = "here", .tag = {}, .commit_time = {}, .is_committed = false};
  const ChangeContext none{.source = "here", .tag = {}, .commit_time = {}};
  const ChangeContext marked{.source = "here", .tag = "archive", .commit_time = {}};
  for (const char* text : {"commit_time is null", "tag is null"}) {
    EXPECT_EQ(outcome_of(text, insert.view(), unknown), "undecidable") << text;
    EXPECT_EQ(outcome_of(text, insert.view(), none), "true") << text;
  }
  EXPECT_EQ(outcome_of("tag = 'archive'", insert.view(), marked), "true");
}

TEST(ConditionTest, AValueThatDidNotComeIsInTheOldRowOrUndecidable) {
  const SampleRow before = row(1, SampleValue::int4(5), "toasted");
  const SampleRow after{SampleValue::int4(1), SampleValue::int4(7), SampleValue::unchanged()};
  const SampleFrame update(lcr::FrameKind::update, 0, std::nullopt, after);
  EXPECT_EQ(outcome_of("label = 'toasted'", update.view()), "undecidable");
  EXPECT_EQ(outcome_of("label = 'x' or n = 7", update.view()), "true");
  EXPECT_EQ(outcome_of("case when label = 'x' then true else true end", update.view()), "undecidable");
  // The division might not have been reached.
  EXPECT_EQ(outcome_of("label = 'x' and 1 / (n - 7) = 1", update.view()), "undecidable");
  const SampleFrame full(lcr::FrameKind::update, lcr::kOldRow, before, after);
  EXPECT_EQ(outcome_of("label = 'toasted'", full.view()), "true");
}

TEST(ConditionTest, ReadsValuesThatComeAsText) {
  const auto text = [](std::string value) {
    return SampleValue{.mark = lcr::ValueMark::text, .bytes = std::move(value)};
  };
  const SampleFrame frame = SampleFrame::insert({text("12"), text("-7"), text("12")});
  EXPECT_EQ(outcome_of("id + n = 5 and label = '12'", frame.view()), "true");
  const SampleFrame broken = SampleFrame::insert({text("12a"), text("-7"), text("12")});
  EXPECT_EQ(outcome_of("id = 12", broken.view()), "XX001");
}

TEST(ConditionTest, WhatAConstantSubjectDecidesIsNotLookedAt) {
  const SampleFrame frame = SampleFrame::insert(row(1, SampleValue::int4(2), "x"));
  EXPECT_EQ(outcome_of("case 1 + 1 when 2 then true when n then 1 / 0 = 1 end", frame.view()), "true");
  EXPECT_EQ(outcome_of("3 + 1 between 1 and 2 and 1 / 0 = 1", frame.view()), "false");
}

TEST(ConditionTest, FailsAsPostgresDoes) {
  const SampleFrame zero = SampleFrame::insert(row(0, SampleValue::int4(INT32_MAX), "12x"));
  const std::pair<const char*, const char*> cases[] = {
      {"1 / id = 1", "22012"},
      {"n + 1 > 0", "22003"},
      {"label::int = 12", "22P02"},
      {"label like 'x\\'", "false"},
      {"label like '1\\'", "22025"},
      {"substr(label, 1, id - 1) = ''", "22011"},
      {"id = 1 and 1 / id = 1", "false"},
      {"n::bigint + 1 > 0", "true"},
  };
  for (const auto& [text, outcome] : cases) EXPECT_EQ(outcome_of(text, zero.view()), outcome) << text;
}

TEST(ConditionTest, RefusesWithThePlace) {
  struct Case {
    const char* text;
    const char* message;
    uint32_t column;
  };
  const Case cases[] = {
      {"missing = 1", "has no column", 1},
      {"n = 'x'", "is no value of type int4", 5},
      {"label < 'x'", "collation", 7},
      {"lower(label) = 'x'", "collation", 1},
      {"label ilike 'x'", "collation", 7},
      {"n", "a condition is expected", 1},
      {"n = label", "no operator =", 3},
      {"now() = 1", "without arguments", 1},
      {"random(n) = 1", "cannot use the function", 1},
      {"id = 1 or 1 / 0 = n", "division by zero", 13},
      {"n::text || commit_time = ''", "settings", 9},
      {"label::date = date '2026-01-01'", "cannot cast", 1},
      {"date '01/02/2026' is null", "settings", 6},
      {"timestamptz '2026-01-01 00:00' is null", "settings", 13},
      {"label collate \"de_DE\" = 'x'", "collation", 7},
      {"n = 1 and\n interval '-1 year 2 days' is null", "settings", 11},
      {"interval '1 day 1 day' is null", "date or time", 10},
      {"position(label, 'x') = 1", "does not fit", 15},
      {"extract(label, 'x') = 1", "does not fit", 14},
      {"label ~ 'x'", "the operator ~ cannot be used", 7},
      {"sqrt(n::numeric) > 2", "the function sqrt cannot be used", 1},
      {"power(n, 2) > 2", "the function power cannot be used", 1},
      {"to_hex(n) < to_hex(id)", "collation", 11},
      {"greatest(label, 'x') = 'x'", "collation", 1},
      {"greatest(n, label) is null", "no common type", 1},
      {"date_part('century', date '2026-01-31') = 1", "cannot take this field", 11},
      {"make_date(2026, 2, 29) is null", "SQLSTATE 22008", 1},
      {"random() < 0.5", "without arguments", 1},
      {"current_date > date '2026-01-31'", "does not fit", 1},
      {"left is null", "does not fit", 1},
      {"n::oid = 1", "no type", 4},
      {"n between 3 an 5", "expected 'AND' here", 13},
  };
  for (const Case& c : cases) {
    const auto condition = Condition::compile(c.text, sample_rule_table());
    ASSERT_FALSE(condition) << c.text;
    EXPECT_NE(condition.error().message.find(c.message), std::string::npos)
        << c.text << ": " << condition.error().message;
    EXPECT_EQ(condition.error().column, c.column) << c.text << ": " << condition.error().message;
  }
}

// Taken for the attribute, a condition would be wrong for every row, without a word.
TEST(ConditionTest, AnAttributeWithAColumnsNameIsRefused) {
  for (const std::string name : {"schema", "table", "operation", "tag", "source", "commit_time"}) {
    RuleTable table = sample_rule_table();
    table.columns[2].name = name;
    const auto refused = Condition::compile("id = 1 and " + name + " is null", table);
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find("the column is \"" + name + "\""), std::string::npos)
        << refused.error().message;
    EXPECT_EQ(refused.error().column, 12U);
    const SampleFrame insert = SampleFrame::insert(row(1, SampleValue::int4(5), "web"));
    for (const std::string& column : {"\"" + name + "\"", "new." + name, "new.\"" + name + "\""}) {
      auto condition = Condition::compile(column + " = 'web'", table);
      ASSERT_TRUE(condition) << condition.error().message;
      Scratch scratch;
      EXPECT_EQ(condition->evaluate(insert.view(), kContext, scratch).outcome, Outcome::is_true) << column;
    }
  }
}

TEST(ConditionTest, RefusesTextsInCollationsThatItDoesNotKnow) {
  RuleTable table = sample_rule_table();
  table.columns[2].collation = Collation::nondeterministic;
  EXPECT_FALSE(Condition::compile("label = 'x'", table));
  EXPECT_FALSE(Condition::compile("label like 'x'", table));
  EXPECT_TRUE(Condition::compile("label collate \"C\" = 'x'", table));
  table.columns[2].collation = Collation::c;
  EXPECT_TRUE(Condition::compile("label < 'x' and lower(label) = 'x'", table));
}

TEST(ConditionTest, KnowsTheLabelsOfAnEnum) {
  RuleTable table = sample_rule_table();
  table.columns[2].type = {20'000};
  EXPECT_FALSE(Condition::compile("label = 'new'", table));
  table.columns[2].enum_labels = {"new", "paid"};
  EXPECT_TRUE(Condition::compile("label = 'new' or label in ('new', 'paid') or label is null", table));
  EXPECT_FALSE(Condition::compile("label = 'lost'", table));
  EXPECT_FALSE(Condition::compile("label < 'paid'", table));
}

TEST(ConditionTest, BytesThatAreNoValueFail) {
  const SampleFrame broken = SampleFrame::insert({SampleValue::of("abc"), SampleValue::null(), SampleValue::null()});
  EXPECT_EQ(outcome_of("id = 1", broken.view()), "XX001");
}

// A server whose encoding does not forbid them may send them.
TEST(ConditionTest, BytesThatAreNoCharactersFillNothing) {
  const SampleFrame tails = SampleFrame::insert(row(1, SampleValue::int4(1), "\x80\x81"));
  EXPECT_EQ(outcome_of("lpad('abc', 5, label) = 'abc'", tails.view()), "true");
  EXPECT_EQ(outcome_of("rpad('abc', 5, label) = 'abc'", tails.view()), "true");
}

// Each of these would take from minutes to hours.
TEST(ConditionTest, AnEvaluationHasOnlySoManySteps) {
  const SampleFrame longest = SampleFrame::insert(row(1, SampleValue::int4(1), std::string(1'000'000, 'a')));
  EXPECT_EQ(outcome_of("trim(both repeat('b', 400000) || 'a' from label) = ''", longest.view()), "54000");
  EXPECT_EQ(outcome_of("translate(substr(label, 1, 200000), repeat('b', 60000), 'c') = ''", longest.view()), "54000");
  EXPECT_EQ(outcome_of("label like '%' || repeat('a', 30000) || 'b'", longest.view()), "54000");
  EXPECT_EQ(outcome_of("trim(both 'ab' from label) = ''", longest.view()), "true");
  EXPECT_EQ(outcome_of("label like '%aab%'", longest.view()), "false");
  const std::string constant =
      outcome_of("trim(both repeat('b', 400000) || 'a' from repeat('a', 400000)) = label", longest.view());
  EXPECT_NE(constant.find("SQLSTATE 54000"), std::string::npos) << constant;
}

// With a search whose time grows with the product of the lengths, each of these would take minutes.
TEST(ConditionTest, ASearchTakesNoMoreThanItsTextsAreLong) {
  const SampleFrame longest = SampleFrame::insert(row(1, SampleValue::int4(1), std::string(1'000'000, 'a')));
  EXPECT_EQ(outcome_of("position(repeat('a', 400000) || 'b' in label) = 0", longest.view()), "true");
  EXPECT_EQ(outcome_of("strpos(label, repeat('a', 400000)) = 1", longest.view()), "true");
  EXPECT_EQ(outcome_of("length(replace(label, repeat('a', 400000) || 'b', '')) = 1000000", longest.view()), "true");
  EXPECT_EQ(outcome_of("split_part(label, repeat('a', 400000) || 'b', 2) = ''", longest.view()), "true");
}

}  // namespace
}  // namespace thalweg::rules
