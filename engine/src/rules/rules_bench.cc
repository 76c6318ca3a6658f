// Cost of a rule for an LCR. Run without arguments; it prints its method first.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "rules/rule_samples.h"
#include "rules/rule_set.h"

namespace thalweg::rules {
namespace {

constexpr const char* kMethod =
    R"(method: one thread judges one insert in memory again and again, by a positive set with
one rule for its table. Its columns: id int4, n int4, label text of 20 characters, note text. integer_beside_1000: the
set has 1000 rules on other tables, too.
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

void judge(benchmark::State& state, const char* condition, size_t other_tables) {
  std::vector<Rule> rules;
  for (size_t i = 0; i < other_tables; ++i) {
    rules.push_back({.name = "other", .schema = "public", .table = "t" + std::to_string(i), .condition = condition});
  }
  rules.push_back({.name = "own", .schema = "public", .table = "orders", .condition = condition});
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
BENCHMARK_CAPTURE(judge, integer, "n > 41", 0);
BENCHMARK_CAPTURE(judge, integer_beside_1000, "n > 41", 1000);
BENCHMARK_CAPTURE(judge, like, "label like '%klm%'", 0);
BENCHMARK_CAPTURE(judge, three, "n > 41 and id <> 7 and label = 'abcdefghijklmnopqrst'", 0);

}  // namespace
}  // namespace thalweg::rules

int main(int argc, char** argv) {
  std::puts(thalweg::rules::kMethod);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
