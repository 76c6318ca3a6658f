// Cost of a rule for an LCR. Run without arguments; it prints its method first.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "rules/rule_samples.h"
#include "rules/rule_set.h"

namespace thalweg::rules {
namespace {

constexpr const char* kMethod = R"(method: one thread judges one insert in memory again and again. Its columns: id int4,
n int4, label text of 20 characters, note text. 'judge_condition' is one condition: of an integer, LIKE, three together.
'sets' is a positive rule set with the integer's rule on the table, without and with 1000 rules on other tables.
)";

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

int main(int argc, char** argv) {
  std::puts(thalweg::rules::kMethod);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
