#include "rules/rule_set.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rules/rule_samples.h"

namespace thalweg::rules {
namespace {

using Set = std::optional<std::vector<Rule>>;

Rule rule(std::string name, std::string condition) {
  return {.name = std::move(name), .schema = "public", .table = "orders", .condition = std::move(condition)};
}

SampleFrame row(SampleValue n) {
  return SampleFrame::insert({SampleValue::int4(1), std::move(n), SampleValue::of("label")});
}

Judgement judge(const RuleSets& sets, const SampleFrame& frame) {
  Scratch scratch;
  auto rules = TableRules::compile(sets, sample_rule_table());
  EXPECT_TRUE(rules) << rules.error().rule << ": " << rules.error().error.message;
  return rules ? rules->judge(frame.view(), {.source = "here", .tag = {}, .commit_time = {}}, scratch) : Judgement{};
}

TEST(RuleSetTest, DecidesAsTheTruthTableSays) {
  const Set none;
  const Set empty = std::vector<Rule>{};
  const Set seven = std::vector{rule("seven", "n = 7")};
  const Set five = std::vector{rule("five", "n = 5")};
  struct Case {
    const Set& negative;
    const Set& positive;
    Decision of_five;
    Decision of_seven;
  };
  constexpr Decision kPass = Decision::pass;
  constexpr Decision kDrop = Decision::drop;
  const Case cases[] = {
      {none, none, kPass, kPass},   {none, seven, kDrop, kPass},  {seven, none, kPass, kDrop},
      {five, seven, kDrop, kPass},  {seven, seven, kDrop, kDrop}, {empty, none, kPass, kPass},
      {empty, seven, kDrop, kPass}, {none, empty, kDrop, kDrop},  {empty, empty, kDrop, kDrop},
      {seven, empty, kDrop, kDrop},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    const RuleSets sets{.negative = cases[i].negative, .positive = cases[i].positive};
    EXPECT_EQ(judge(sets, row(SampleValue::int4(5))).decision, cases[i].of_five) << i;
    EXPECT_EQ(judge(sets, row(SampleValue::int4(7))).decision, cases[i].of_seven) << i;
  }
}

TEST(RuleSetTest, NullIsNotTrue) {
  EXPECT_EQ(judge({.negative = {}, .positive = std::vector{rule("r", "n = 7")}}, row(SampleValue::null())).decision,
            Decision::drop);
  EXPECT_EQ(judge({.negative = std::vector{rule("r", "n = 7")}, .positive = {}}, row(SampleValue::null())).decision,
            Decision::pass);
}

TEST(RuleSetTest, TellsWhatItCannotDecideUnlessAnotherRuleDoes) {
  const SampleFrame unknown = row(SampleValue::unchanged());
  const auto undecided = judge({.negative = {}, .positive = std::vector{rule("r", "n = 7")}}, unknown);
  EXPECT_EQ(undecided.decision, Decision::undecidable);
  ASSERT_NE(undecided.rule, nullptr);
  const RuleSets two{.negative = {}, .positive = std::vector{rule("r", "n = 7"), rule("all", "")}};
  EXPECT_EQ(judge(two, unknown).decision, Decision::pass);

  const RuleSets dividing{.negative = std::vector{rule("r", "1 / n = 1")}, .positive = {}};
  const auto failed = judge(dividing, row(SampleValue::int4(0)));
  EXPECT_EQ(failed.decision, Decision::failed);
  EXPECT_EQ(sqlstate_of(failed.failure), "22012");
}

TEST(RuleSetTest, ANegativeRuleThatCannotDecideMattersOnlyWhereThePositiveSetPasses) {
  const auto unclear = std::vector{rule("unclear", "label = 'x'")};
  const RuleSets passing{.negative = unclear, .positive = std::vector{rule("five", "n = 5")}};
  const RuleSets dropping{.negative = unclear, .positive = std::vector{rule("seven", "n = 7")}};
  const RuleSets alone{.negative = unclear, .positive = {}};
  const SampleFrame frame = SampleFrame::insert({SampleValue::int4(1), SampleValue::int4(5), SampleValue::unchanged()});
  const Judgement judgement = judge(passing, frame);
  EXPECT_EQ(judgement.decision, Decision::undecidable);
  ASSERT_NE(judgement.rule, nullptr);
  EXPECT_EQ(judgement.rule->name, "unclear");
  EXPECT_EQ(judge(dropping, frame).decision, Decision::drop);
  EXPECT_EQ(judge(alone, frame).decision, Decision::undecidable);
}

TEST(RuleSetTest, TheFirstRuleThatCannotBeDecidedIsTold) {
  const RuleSets sets{.negative = {},
                      .positive = std::vector{rule("fails", "1 / n = 1"), rule("unclear", "label = 'x'")}};
  const SampleFrame frame = SampleFrame::insert({SampleValue::int4(1), SampleValue::int4(0), SampleValue::unchanged()});
  const Judgement judgement = judge(sets, frame);
  EXPECT_EQ(judgement.decision, Decision::failed);
  ASSERT_NE(judgement.rule, nullptr);
  EXPECT_EQ(judgement.rule->name, "fails");
}

Rule with(OnError policy, Rule rule) {
  rule.on_error = policy;
  return rule;
}

// Both sets in three-valued logic, where a rule that is unclear is unknown, and then where it counts as its policy
// says.
TEST(RuleSetTest, APolicyDecidesExactlyWhereTheRulesDoNot) {
  enum class Truth : uint8_t { no, unknown, yes };
  struct Kind {
    const char* condition;
    OnError policy;
    Truth truth;
    bool fails;
  };
  const std::vector<Kind> kinds = {
      {"n = 0", OnError::stop, Truth::yes, false},
      {"n = 1", OnError::as_true, Truth::no, false},
      {"1 / n = 1", OnError::stop, Truth::unknown, true},
      {"1 / n = 1", OnError::as_true, Truth::unknown, true},
      {"1 / n = 1", OnError::as_false, Truth::unknown, true},
      {"label = 'x'", OnError::stop, Truth::unknown, false},
      {"label = 'x'", OnError::as_true, Truth::unknown, false},
      {"label = 'x'", OnError::as_false, Truth::unknown, false},
  };
  const SampleFrame frame = SampleFrame::insert({SampleValue::int4(1), SampleValue::int4(0), SampleValue::unchanged()});
  // Sets of none, one or two rules; without any, a set is none.
  std::vector<std::vector<size_t>> sets = {{}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    sets.push_back({i});
    for (size_t j = 0; j < kinds.size(); ++j) sets.push_back({i, j});
  }
  const auto any = [&](const std::vector<size_t>& set, bool by_policy) {
    Truth truth = Truth::no;
    for (const size_t i : set) {
      Truth of_rule = kinds[i].truth;
      if (by_policy && of_rule == Truth::unknown) {
        if (kinds[i].policy == OnError::as_true) of_rule = Truth::yes;
        if (kinds[i].policy == OnError::as_false) of_rule = Truth::no;
      }
      truth = std::max(truth, of_rule);
    }
    return truth;
  };
  const auto passes = [&](const std::vector<size_t>& negative, const std::vector<size_t>& positive, bool by_policy) {
    const auto opposite = static_cast<Truth>(2 - static_cast<int>(any(negative, by_policy)));
    return std::min(opposite, positive.empty() ? Truth::yes : any(positive, by_policy));
  };
  const auto rules_of = [&](const std::vector<size_t>& set, const char* name) {
    std::vector<Rule> rules;
    for (size_t i = 0; i < set.size(); ++i) {
      rules.push_back(with(kinds[set[i]].policy, rule(name + std::to_string(i), kinds[set[i]].condition)));
    }
    return rules.empty() ? Set{} : Set{rules};
  };
  for (const auto& negative : sets) {
    for (const auto& positive : sets) {
      const RuleSets both{.negative = rules_of(negative, "n"), .positive = rules_of(positive, "p")};
      Scratch scratch;
      auto compiled = TableRules::compile(both, sample_rule_table());
      ASSERT_TRUE(compiled);
      const Judgement judgement = compiled->judge(frame.view(), {.source = "here"}, scratch);
      const Truth alone = passes(negative, positive, false);
      const Truth with_policies = passes(negative, positive, true);
      const bool decides = judgement.decision == Decision::pass || judgement.decision == Decision::drop;
      const std::string about = testing::PrintToString(negative) + " " + testing::PrintToString(positive);
      ASSERT_EQ(decides, with_policies != Truth::unknown) << about;
      ASSERT_EQ(judgement.by_policy != nullptr, decides && alone == Truth::unknown) << about;
      if (decides) {
        ASSERT_EQ(judgement.decision == Decision::pass, with_policies == Truth::yes) << about;
      } else {
        ASSERT_NE(judgement.rule, nullptr) << about;
        ASSERT_EQ(judgement.rule->on_error, OnError::stop) << about;
        ASSERT_EQ(judgement.decision == Decision::failed, judgement.rule->condition == "1 / n = 1") << about;
      }
      if (judgement.by_policy != nullptr) {
        ASSERT_NE(judgement.by_policy->on_error, OnError::stop) << about;
        ASSERT_EQ(judgement.failure != Failure::none, judgement.by_policy->condition == "1 / n = 1") << about;
      }
    }
  }
}

TEST(RuleSetTest, ARuleWithAPolicyIsNotForeseenToStop) {
  const auto foreseen = [](OnError policy, const char* condition, bool subset) {
    Rule made = with(policy, rule("r", condition));
    made.subset = subset;
    const RuleSets sets{.negative = {}, .positive = std::vector{made}};
    RuleTable table = sample_rule_table();
    table.columns[2].may_be_long = true;
    const auto rules = TableRules::compile(sets, table);
    EXPECT_TRUE(rules);
    return std::pair(rules->rules_of_old_rows().size(), rules->rules_of_long_values().size());
  };
  EXPECT_EQ(foreseen(OnError::stop, "n = 7", false).first, 1U);
  EXPECT_EQ(foreseen(OnError::as_true, "n = 7", false).first, 0U);
  EXPECT_EQ(foreseen(OnError::as_false, "n = 7", true).first, 0U);
  // The INSERT that an update becomes needs the long value whatever the policy is.
  EXPECT_EQ(foreseen(OnError::as_false, "n = 7", true).second, 1U);
  EXPECT_EQ(foreseen(OnError::stop, "label = 'x'", false).second, 1U);
  EXPECT_EQ(foreseen(OnError::as_false, "label = 'x'", false).second, 0U);
}

TEST(RuleSetTest, JudgesTheKindsOfTheRule) {
  const auto insert = row(SampleValue::int4(1));
  const SampleFrame remove(lcr::FrameKind::remove, lcr::kOldKey,
                           SampleRow{SampleValue::int4(1), SampleValue::null(), SampleValue::null()}, std::nullopt);
  Rule inserts = rule("inserts", "");
  inserts.kinds = kInsert;
  EXPECT_EQ(judge({.negative = {}, .positive = std::vector{inserts}}, insert).decision, Decision::pass);
  EXPECT_EQ(judge({.negative = {}, .positive = std::vector{inserts}}, remove).decision, Decision::drop);
  EXPECT_EQ(judge({.negative = std::vector{inserts}, .positive = {}}, remove).decision, Decision::pass);
}

TEST(RuleSetTest, ADroppedColumnRefusesTheRule) {
  const RuleSets sets{.negative = {}, .positive = std::vector{rule("r", "id = 1\n  and label is null")}};
  RuleTable table = sample_rule_table();
  EXPECT_TRUE(TableRules::compile(sets, table));
  table.columns.pop_back();
  const auto refused = TableRules::compile(sets, table);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().rule, "r");
  EXPECT_EQ(refused.error().error.line, 2U);
  EXPECT_EQ(refused.error().error.column, 7U);
  EXPECT_NE(refused.error().error.message.find("has no column \"label\""), std::string::npos);
}

TEST(RuleSetTest, TakesTheRulesOfTheTableOnly) {
  std::vector<Rule> rules;
  for (int i = 0; i < 1000; ++i) {
    // Would be refused if it were compiled: this table has no such column.
    rules.push_back(
        {.name = "other", .schema = "public", .table = "t" + std::to_string(i), .condition = "missing = 1"});
  }
  rules.push_back({.name = "schema", .schema = "public", .table = "", .kinds = kUpdate, .condition = ""});
  rules.push_back({.name = "global", .schema = "", .table = "", .kinds = kInsert, .condition = "table = 'orders'"});
  const RuleSets sets{.negative = {}, .positive = rules};
  const auto found = judge(sets, row(SampleValue::int4(1)));
  EXPECT_EQ(found.decision, Decision::pass);
  ASSERT_NE(found.rule, nullptr);
  EXPECT_EQ(found.rule->name, "global");
}

TEST(RuleSetTest, RefusesWhatARuleOfATableCannotRead) {
  const auto refusal = [](Rule rule) {
    rule.schema = rule.table = "";
    const auto rules = TableRules::compile({.negative = {}, .positive = std::vector{rule}}, sample_rule_table());
    return rules ? "none" : std::to_string(rules.error().error.column) + " " + rules.error().error.message;
  };
  EXPECT_EQ(refusal(rule("r", "n = 1 or commit_time > '2026-01-01 00:00Z'")), "none");
  EXPECT_TRUE(refusal(rule("r", "\"commit_time\" is null")).contains("no column"));
  EXPECT_EQ(refusal(rule("r", "old.n = 1")), "none");
  Rule subset = rule("r", "n = 1 and new.n = 1");
  subset.subset = true;
  EXPECT_TRUE(refusal(subset).starts_with("11 ")) << refusal(subset);
  subset.condition = "n = 1 and operation <> 'DELETE'";
  EXPECT_EQ(refusal(subset), "none");
}

TEST(RuleSetTest, ATruncateEmptiesASubset) {
  const base::RelationId relation{16'385};
  const auto truncate = lcr::make_truncate_frame({1}, {}, {1}, 0, std::span(&relation, 1));
  const auto decided = [&](const RuleSets& sets) {
    Scratch scratch;
    auto rules = TableRules::compile(sets, sample_rule_table());
    EXPECT_TRUE(rules);
    return rules
        ->judge(lcr::FrameView::trusted(truncate.data()), {.source = "here", .tag = {}, .commit_time = {}}, scratch)
        .decision;
  };
  Rule seven = rule("seven", "n = 7");
  EXPECT_EQ(decided({.negative = {}, .positive = std::vector{seven}}), Decision::drop);
  seven.subset = true;
  EXPECT_EQ(decided({.negative = {}, .positive = std::vector{seven}}), Decision::pass);
  Rule none = rule("none", "");
  none.kinds = kTruncate;
  EXPECT_EQ(decided({.negative = std::vector{none}, .positive = std::vector{seven}}), Decision::drop);
}

TEST(RuleSetTest, TellsWhichRulesReadLongValues) {
  const auto found = [](const RuleSets& sets, bool is_key = false) {
    RuleTable table = sample_rule_table();
    table.columns[2].may_be_long = true;
    table.columns[2].is_key = is_key;
    const auto rules = TableRules::compile(sets, table);
    EXPECT_TRUE(rules);
    std::string names;
    for (const Rule* const rule : rules->rules_of_long_values()) names += rule->name + " ";
    return names;
  };
  Rule inserts = rule("inserts", "label = 'a'");
  inserts.kinds = kInsert;
  Rule deletes = rule("deletes", "label = 'a'");
  deletes.kinds = kDelete;
  Rule before = rule("before", "old.label = 'a'");
  const std::vector<Rule> rules{inserts, deletes, before, rule("all", "label = 'a'"), rule("short", "n = 1")};
  const std::vector<Rule> always{rule("always", "")};
  EXPECT_EQ(found({.negative = {}, .positive = rules}), "all ");
  EXPECT_EQ(found({.negative = rules, .positive = {}}), "all ");
  EXPECT_EQ(found({.negative = rules, .positive = {}}, true), "") << "an update brings the key";
  EXPECT_EQ(found({.negative = always, .positive = rules}), "") << "it is dropped in any case";
  EXPECT_EQ(found({.negative = rules, .positive = always}), "all ");
  // An update that brings a row into a subset becomes an INSERT, which needs the whole row.
  Rule subset = rule("subset", "id = 1");
  subset.subset = true;
  EXPECT_EQ(found({.negative = std::vector{rule("no", "n = 1")}, .positive = std::vector{subset}}), "subset ");
  EXPECT_EQ(found({.negative = {}, .positive = std::vector{subset}}, true), "");
}

TEST(RuleSetTest, TellsWhichRulesReadOldRows) {
  const auto found = [](const RuleSets& sets) {
    const auto rules = TableRules::compile(sets, sample_rule_table());
    EXPECT_TRUE(rules);
    std::string names;
    for (const OldRowRead& read : rules->rules_of_old_rows()) names += read.rule->name + " ";
    return names;
  };
  Rule inserts = rule("inserts", "n = 1");
  inserts.kinds = kInsert;
  Rule updates = rule("updates", "n = 1");
  updates.kinds = kInsert | kUpdate;
  Rule before = rule("before", "old.n = 1");
  before.kinds = kUpdate;
  const std::vector<Rule> rules{inserts, updates, before, rule("all", "n = 1"), rule("key", "id = 1")};
  EXPECT_EQ(found({.negative = {}, .positive = rules}), "before all ");
  // A rule without a condition decides where another one cannot.
  Rule no_purges = rule("no_purges", "");
  no_purges.kinds = kDelete | kTruncate;
  EXPECT_EQ(found({.negative = std::vector{no_purges, rule("no_tests", "n = 1")}, .positive = {}}), "");
  EXPECT_EQ(found({.negative = std::vector{no_purges}, .positive = rules}), "before ");
  EXPECT_EQ(found({.negative = std::vector{before}, .positive = std::vector{no_purges, rule("all", "n = 1")}}),
            "before ");
  Rule subset = rule("subset", "id = 1");
  subset.subset = true;
  EXPECT_EQ(found({.negative = rules, .positive = std::vector{subset}}), "updates before all ");
}

TEST(RuleSetTest, NamesTheRuleThatIsRefused) {
  const RuleSets sets{.negative = {}, .positive = std::vector{rule("good", "n = 1"), rule("bad", "n =\n missing")}};
  const auto rules = TableRules::compile(sets, sample_rule_table());
  ASSERT_FALSE(rules);
  EXPECT_EQ(rules.error().rule, "bad");
  EXPECT_EQ(rules.error().error.line, 2U);
  EXPECT_EQ(rules.error().error.column, 2U);
}

TEST(RuleSetTest, TellsRulesThatNeedTheWholeTransaction) {
  const auto reads = [](const std::string& condition) {
    const RuleSets negative{.negative = std::vector{rule("r", condition)}, .positive = {}};
    const RuleSets positive{.negative = {}, .positive = std::vector{rule("q", "n = 1"), rule("r", condition)}};
    EXPECT_EQ(reads_transaction(negative), reads_transaction(positive)) << condition;
    return reads_transaction(negative);
  };
  EXPECT_TRUE(reads("tag = 'archive'"));
  EXPECT_TRUE(reads("n = 1 or not (commit_time > '2026-01-01 00:00Z')"));
  EXPECT_FALSE(reads("label = 'tag' and source = 'here' and \"tag\" = 1"));
  EXPECT_FALSE(reads("tag ="));
  EXPECT_FALSE(reads_transaction(RuleSets{}));
}

}  // namespace
}  // namespace thalweg::rules
