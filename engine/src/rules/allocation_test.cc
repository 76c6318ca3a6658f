#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "rules/rule_samples.h"
#include "rules/rule_set.h"
#include "support/sanitized.h"

// Counts what the whole test program allocates, so that a test can say that an evaluation allocates nothing. The
// sanitizers have allocators of their own, which check that they are not mixed with others.
#if !THALWEG_SANITIZED

namespace {
thread_local size_t allocations = 0;  // writer, reader: one thread
}

// Not inline: gcc would see malloc() and free() on one side only, and warn of a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace thalweg::rules {
namespace {

TEST(AllocationTest, AJudgementAllocatesNothing) {
  const Rule rule{.name = "r",
                  .schema = "public",
                  .table = "orders",
                  .condition =
                      "n > 41 and label like '%klm%' and upper(label || label collate \"C\") <> 'X' and "
                      "n * 1.5 / 7 + id::numeric > 0.1 and extract(year from date '2026-01-31' + n) = 2026 "
                      "and greatest(n, 7) & 3 < 9 and md5(label) <> encode(sha256(decode('00', 'hex') || "
                      "decode(to_hex(n), 'hex')), 'base64') and overlay(label placing 'x' from 2) <> '' "
                      "and (details->'a'->>1)::int = 42 and details->>'b' = 'x\"y' and details ? 'b' "
                      "and make_timestamp(n, 1, 1, 0, 0, 1.5) < date_bin('1 hour', date '2026-01-31' + n, "
                      "timestamp '2026-01-01') "
                      "and case id when 1 then n::text end in ('41', '42', label) and tag is null"};
  const RuleSets sets{.negative = {}, .positive = std::vector{rule}};
  RuleTable table = sample_rule_table();
  table.columns.push_back({.name = "details", .type = {3802}, .enum_labels = {}});
  auto rules = TableRules::compile(sets, table);
  ASSERT_TRUE(rules) << rules.error().error.message;
  const SampleFrame frame =
      SampleFrame::insert({SampleValue::int4(1), SampleValue::int4(42), SampleValue::of("abcdefghijklmnopqrst"),
                           SampleValue::of("\1{\"a\": [1, \"42\"], \"b\": \"x\\\"y\"}")});
  Scratch scratch;
  const ChangeContext context{.source = "here", .tag = {}, .commit_time = {}};
  const size_t before = allocations;
  const Judgement judgement = rules->judge(frame.view(), context, scratch);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(judgement.decision, Decision::pass);
  const auto counted = std::make_unique<int>(1);
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace thalweg::rules

#endif
