#include "rules/insert_filter.h"

#include <gtest/gtest.h>

#include "pg/connection.h"
#include "rules/rule_samples.h"
#include "support/test_cluster.h"

namespace thalweg::rules {
namespace {

using Set = std::optional<std::vector<Rule>>;

Rule rule(std::string condition, uint8_t kinds = kEveryKind) {
  return {.name = "r", .schema = {}, .table = {}, .kinds = kinds, .condition = std::move(condition)};
}

std::string filter(const Set& negative, const Set& positive) {
  const auto made = insert_filter({.negative = negative, .positive = positive}, sample_rule_table(), "here");
  return made ? *made : "refused: " + made.error().error.message;
}

TEST(InsertFilterTest, TakesTheRowsThatInsertsWouldBring) {
  EXPECT_EQ(filter({}, {}), "");
  EXPECT_EQ(filter(std::vector<Rule>{}, {}), "");
  EXPECT_EQ(filter({}, std::vector<Rule>{}), "false");
  EXPECT_EQ(filter({}, std::vector{rule("")}), "((true IS TRUE))");
  EXPECT_EQ(filter({}, std::vector{rule("", kUpdate)}), "(false)");
  EXPECT_EQ(filter(std::vector{rule("", kDelete)}, {}), "");
  EXPECT_EQ(filter(std::vector{rule("n = 7")}, std::vector{rule("id = 1"), rule("n < id")}),
            "NOT (((\"n\" OPERATOR(pg_catalog.=) (7)) IS TRUE)) AND "
            "(((\"id\" OPERATOR(pg_catalog.=) (1)) IS TRUE) OR ((\"n\" OPERATOR(pg_catalog.<) \"id\") IS TRUE))");
}

// Nothing that the engine does not know by itself gets to the source, whatever the text is made of.
TEST(InsertFilterTest, WritesTypedConditionsOnly) {
  for (const char* text : {"n = 1; DROP TABLE orders", "n = 1 -- ", "n = 1 /* */", "pg_sleep(10) is null", "n = 1)",
                           "pg_read_file('x') = ''", "n = (select 1)", "label = E'\\''", "missing = 1", "n"}) {
    EXPECT_TRUE(filter({}, std::vector{rule(text)}).starts_with("refused: ")) << text;
    EXPECT_TRUE(filter(std::vector{rule(text)}, {}).starts_with("refused: ")) << text;
    EXPECT_EQ(filter(std::vector{rule(text)}, std::vector<Rule>{}), "false") << text;
  }
  EXPECT_EQ(filter({}, std::vector{rule("label = 'it''s; \\'' -- '")}),
            "(((\"label\" OPERATOR(pg_catalog.=) E'it''s; \\\\'' -- ') IS TRUE))");
  EXPECT_EQ(filter({}, std::vector{rule("source = 'x'")}),
            "((((SELECT CAST('here' AS pg_catalog.text) COLLATE pg_catalog.\"C\") OPERATOR(pg_catalog.=) 'x') IS "
            "TRUE))");
}

// The server takes exactly those rows that the engine passes as INSERTs, under settings that change how SQL is read.
TEST(InsertFilterTest, AgreesWithTheJudgementOfInserts) {
  auto opened = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = ""});
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(
      opened->script("SET standard_conforming_strings = off; SET backslash_quote = off; "
                     "SET transform_null_equals = on; DROP TABLE IF EXISTS public.orders; "
                     "CREATE TABLE public.orders (id integer PRIMARY KEY, n integer, label text); "
                     "INSERT INTO public.orders SELECT k, nullif(k % 5, 3), "
                     "nullif((ARRAY['a', 'it''s', E'\\\\', 'x', ''])[1 + k % 5], 'x') FROM "
                     "generate_series(1, 100) k"));
  const std::vector<Set> sets{
      {},
      std::vector{rule("n = 1")},
      std::vector{rule("n is null"), rule("label = '\\'")},
      std::vector{rule("n = null")},
      std::vector{rule("old.n is null and new.n > 1", kInsert), rule("true", kDelete)},
      std::vector{rule("old.n = 1 or label like '%''s'")},
      std::vector{rule("case n when 1 then label = 'it''s' else id between 10 and 20 end")},
      std::vector{rule("schema = 'public' and table = 'orders' and operation = 'INSERT' and source = 'here' and tag "
                       "is null and n in (0, 2)")},
      std::vector{rule("coalesce(old.n, n, 7) = 7 and label || 'x' <> 'ax'")},
      std::vector{rule("n = 1 or commit_time > '2026-01-01 00:00Z'")},
      std::vector{rule("n = 2 and commit_time is null")}};
  const auto rows = opened->query("SELECT id, n, label FROM public.orders ORDER BY id");
  ASSERT_TRUE(rows);
  Scratch scratch;
  for (const Set& negative : sets) {
    for (const Set& positive : sets) {
      const RuleSets both{.negative = negative, .positive = positive};
      auto rules = TableRules::compile(both, sample_rule_table());
      ASSERT_TRUE(rules) << rules.error().error.message;
      const std::string where = filter(negative, positive);
      const auto found =
          opened->query("SELECT id FROM public.orders WHERE " + (where.empty() ? "true" : where) + " ORDER BY id");
      ASSERT_TRUE(found) << found.error().message << "\n" << where;
      std::vector<int64_t> passed, taken;
      for (size_t i = 0; i < found->size(); ++i) taken.push_back(found->integer(i, 0));
      for (size_t i = 0; i < rows->size(); ++i) {
        const SampleFrame frame = SampleFrame::insert(
            {SampleValue::int4(static_cast<int32_t>(rows->integer(i, 0))),
             rows->is_null(i, 1) ? SampleValue::null() : SampleValue::int4(static_cast<int32_t>(rows->integer(i, 1))),
             rows->is_null(i, 2) ? SampleValue::null() : SampleValue::of(std::string(rows->text(i, 2)))});
        const ChangeContext context{.source = "here", .tag = {}, .commit_time = {}};
        const Judgement judgement = rules->judge(frame.view(), context, scratch);
        if (judgement.decision == Decision::pass) passed.push_back(rows->integer(i, 0));
      }
      EXPECT_EQ(taken, passed) << where;
    }
  }
}

}  // namespace
}  // namespace thalweg::rules
