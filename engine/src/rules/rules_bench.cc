// What a rule costs for an LCR.
//
// Method: one thread, one insert of four columns (id int4, n int4, label text of 20 characters, note text) in memory,
// judged again and again. 'integer' and 'like' are one condition each; 'sets' is the judgement of a rule set with that
// integer rule on the table, beside 'other_tables': the same with 1000 more rules on other tables.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "rules/rule_samples.h"
#include "rules/rule_set.h"

namespace thalweg::rules {
namespace {

const ChangeContext kContext{.source = "source", .tag = {}, .commit_time = {}};

RuleTable table() {
  RuleTable made = sample_rule_table();
  made.columns.push_back({.name = "note", .type = {25}, .enum_labels = {}});
  return made;
}

SampleFrame row() {
  return SampleFrame::insert(
      {SampleValue::int4(1), SampleValue::int4(42), SampleValue::of("abcdefghijklmnopqrst"), SampleValue::of("note")});
}

void judge_condition(benchmark::State& state, const char* text) {
  auto condition = Condition::compile(text, table());
  if (!condition) std::abort();
  const SampleFrame frame = row();
  Scratch scratch;
  for (auto _ : state) {
    const Verdict verdict = condition->evaluate(frame.view(), kContext, scratch);
    benchmark::DoNotOptimize(verdict);
  }
}
BENCHMARK_CAPTURE(judge_condition, integer, "n > 41");
BENCHMARK_CAPTURE(judge_condition, like, "label like '%klm%'");
BENCHMARK_CAPTURE(judge_condition, three, "n > 41 and id <> 7 and label = 'abcdefghijklmnopqrst'");

void judge_set(benchmark::State& state) {
  std::vector<Rule> rules;
  for (int64_t i = 0; i < state.range(0); ++i) {
    rules.push_back({.name = "other", .schema = "public", .table = "t" + std::to_string(i), .condition = "n > 41"});
  }
  rules.push_back({.name = "own", .schema = "public", .table = "orders", .condition = "n > 41"});
  const RuleSets sets{.negative = {}, .positive = rules};
  auto compiled = TableRules::compile(sets, table());
  if (!compiled) std::abort();
  const SampleFrame frame = row();
  Scratch scratch;
  for (auto _ : state) {
    const Judgement judgement = compiled->judge(frame.view(), kContext, scratch);
    benchmark::DoNotOptimize(judgement);
  }
}
BENCHMARK(judge_set)->Name("sets/other_tables")->Arg(0)->Arg(1000);

}  // namespace
}  // namespace thalweg::rules

BENCHMARK_MAIN();
