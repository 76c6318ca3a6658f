#include "rules/rule_set.h"

#include <utility>

namespace thalweg::rules {

namespace {

bool concerns(const Rule& rule, const RuleTable& table) {
  return (rule.schema.empty() || rule.schema == table.schema) && (rule.table.empty() || rule.table == table.name);
}

Kinds kind_of(lcr::FrameKind kind) {
  switch (kind) {
    case lcr::FrameKind::insert:
      return kInsert;
    case lcr::FrameKind::update:
      return kUpdate;
    case lcr::FrameKind::remove:
      return kDelete;
    default:
      return kTruncate;
  }
}

}  // namespace

std::expected<std::vector<TableRules::Compiled>, RuleRefusal> TableRules::compile_set(const std::vector<Rule>& rules,
                                                                                      const RuleTable& table) {
  std::vector<Compiled> compiled;
  for (const Rule& rule : rules) {
    if (!concerns(rule, table)) continue;
    Compiled made{.rule = &rule, .condition = std::nullopt};
    if (!rule.condition.empty()) {
      auto condition = Condition::compile(rule.condition, table);
      if (!condition) return std::unexpected(RuleRefusal{.rule = rule.name, .error = std::move(condition).error()});
      made.condition.emplace(std::move(*condition));
    }
    compiled.push_back(std::move(made));
  }
  return compiled;
}

std::expected<TableRules, RuleRefusal> TableRules::compile(const RuleSets& sets, const RuleTable& table) {
  TableRules made;
  const bool drops_all = sets.positive && sets.positive->empty();
  if (sets.negative && !drops_all) {
    auto negative = compile_set(*sets.negative, table);
    if (!negative) return std::unexpected(std::move(negative).error());
    made.negative_ = std::move(*negative);
  }
  if (sets.positive) {
    auto positive = compile_set(*sets.positive, table);
    if (!positive) return std::unexpected(std::move(positive).error());
    made.positive_ = std::move(*positive);
    made.otherwise_ = Decision::drop;
  }
  return made;
}

std::optional<Judgement> TableRules::find_true(std::vector<Compiled>& rules, Decision decision,
                                               const lcr::FrameView& frame, const ChangeContext& context,
                                               Scratch& scratch) {
  const Kinds kind = kind_of(frame.kind());
  std::optional<Judgement> unclear;
  for (Compiled& compiled : rules) {
    if ((compiled.rule->kinds & kind) == 0) continue;
    if (!compiled.condition) return Judgement{.decision = decision, .rule = compiled.rule};
    const Verdict verdict = compiled.condition->evaluate(frame, context, scratch);
    switch (verdict.outcome) {
      case Outcome::is_true:
        return Judgement{.decision = decision, .rule = compiled.rule};
      case Outcome::undecidable:
        if (!unclear) unclear = Judgement{.decision = Decision::undecidable, .rule = compiled.rule};
        break;
      case Outcome::failed:
        if (!unclear) {
          unclear = Judgement{.decision = Decision::failed, .rule = compiled.rule, .failure = verdict.failure};
        }
        break;
      default:
        break;
    }
  }
  return unclear;
}

Judgement TableRules::judge(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch) {
  std::optional<Judgement> negative;
  if (!negative_.empty()) negative = find_true(negative_, Decision::drop, frame, context, scratch);
  if (negative && negative->decision == Decision::drop) return *negative;
  std::optional<Judgement> positive;
  if (!positive_.empty()) positive = find_true(positive_, Decision::pass, frame, context, scratch);
  const Judgement rest = positive.value_or(Judgement{.decision = otherwise_});
  // Where the positive set drops the change, it does not matter what the negative set could not decide.
  return negative && rest.decision != Decision::drop ? *negative : rest;
}

}  // namespace thalweg::rules
