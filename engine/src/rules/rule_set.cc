#include "rules/rule_set.h"

#include <algorithm>
#include <utility>

#include "rules/parser.h"

namespace thalweg::rules {

namespace {

// The first node of the tree, in the order of the text, that `is` true of; null: none.
const Expression* find_node(const Expression& node, const auto& is) {
  if (is(node)) return &node;
  for (const Expression& argument : node.arguments) {
    if (const Expression* const found = find_node(argument, is)) return found;
  }
  return nullptr;
}

// Refuses what a condition may say, but not in this rule.
Ruled<void> check_use(const Rule& rule) {
  RULES_ASSIGN(tree, parse(rule.condition));
  const auto is_qualified = [](const Expression& node) {
    return node.kind == Syntax::column && node.row != Row::newest;
  };
  const Expression* const found = rule.subset ? find_node(tree, is_qualified) : nullptr;
  if (found == nullptr) return {};
  return std::unexpected(place_in(rule.condition, {.message = "a rule that makes a subset reads columns without old "
                                                              "or new: it is evaluated for both rows of an update",
                                                   .offset = found->offset}));
}

bool reads_transaction(const std::vector<Rule>& rules) {
  return std::ranges::any_of(rules, [](const Rule& rule) {
    const auto tree = parse(rule.condition);
    if (!tree) return false;  // it is refused anyway
    return find_node(*tree, [](const Expression& node) {
             return node.kind == Syntax::attribute && (node.text == "tag" || node.text == "commit_time");
           }) != nullptr;
  });
}

}  // namespace

bool reads_transaction(const RuleSets& sets) {
  return (sets.negative && reads_transaction(*sets.negative)) || (sets.positive && reads_transaction(*sets.positive));
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

bool concerns(const Rule& rule, const RuleTable& table) {
  return (rule.schema.empty() || rule.schema == table.schema) && (rule.table.empty() || rule.table == table.name);
}

std::expected<std::vector<TableRules::Compiled>, RuleRefusal> TableRules::compile_set(const std::vector<Rule>& rules,
                                                                                      const RuleTable& table) {
  std::vector<Compiled> compiled;
  for (const Rule& rule : rules) {
    if (!concerns(rule, table)) continue;
    Compiled made{.rule = &rule, .condition = std::nullopt};
    if (!rule.condition.empty()) {
      auto condition = Condition::compile(rule.condition, table);
      if (condition) {
        if (auto fit = check_use(rule); !fit) condition = std::unexpected(std::move(fit).error());
      }
      if (!condition) {
        return std::unexpected(
            RuleRefusal{.rule = rule.name, .scope = rule.scope, .error = std::move(condition).error()});
      }
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
    made.makes_subset_ = std::ranges::any_of(*sets.positive, &Rule::subset);
    made.may_lack_values_ = made.makes_subset_ && std::ranges::any_of(table.columns, [](const RuleColumn& column) {
                              return column.may_be_long && !column.is_key;
                            });
  }
  return made;
}

TableRules::Finding TableRules::find_true(std::vector<Compiled>& rules, const lcr::FrameView& frame,
                                          const ChangeContext& context, Scratch& scratch, Row plain) const {
  const Kinds kind = kind_of(frame.kind());
  Finding finding;
  for (Compiled& compiled : rules) {
    if ((compiled.rule->kinds & kind) == 0) continue;
    // A TRUNCATE has no row, and empties a subset whatever the conditions say of rows. A rule that names it means it.
    const bool empties_subset = makes_subset_ && kind == kTruncate && compiled.rule->kinds == kEveryKind;
    if (empties_subset && !compiled.rule->subset && compiled.condition) continue;
    if (!compiled.condition || empties_subset) return {.is_true = compiled.rule, .unclear = {}};
    const Verdict verdict = compiled.condition->evaluate(frame, context, scratch, plain);
    if (verdict.outcome == Outcome::is_true) return {.is_true = compiled.rule, .unclear = {}};
    if (verdict.outcome != Outcome::undecidable && verdict.outcome != Outcome::failed) continue;
    Unclear& first = finding.unclear[static_cast<size_t>(compiled.rule->on_error)];
    if (first.rule == nullptr) first = {.rule = compiled.rule, .failure = verdict.failure};
  }
  return finding;
}

uint8_t TableRules::kinds_decided_by(const std::vector<Compiled>& rules) {
  uint8_t kinds = 0;
  for (const Compiled& compiled : rules) {
    if (!compiled.condition) kinds |= compiled.rule->kinds;
  }
  return kinds;
}

void TableRules::for_each_condition(const auto& visit) const {
  const uint8_t dropped = kinds_decided_by(negative_);
  const uint8_t decided = dropped | kinds_decided_by(positive_);
  const auto visit_set = [&](const std::vector<Compiled>& rules, uint8_t without) {
    for (const Compiled& compiled : rules) {
      if (compiled.condition) visit(compiled, static_cast<uint8_t>(compiled.rule->kinds & ~without));
    }
  };
  visit_set(negative_, dropped);
  visit_set(positive_, decided);
}

std::vector<OldRowRead> TableRules::rules_of_old_rows() const {
  std::vector<OldRowRead> found;
  for_each_condition([&](const Compiled& compiled, uint8_t kinds) {
    const bool plain_too = (kinds & kDelete) != 0 || (makes_subset_ && (kinds & kUpdate) != 0);
    const bool meets_old_rows = (kinds & (kUpdate | kDelete)) != 0;
    const bool stops = compiled.rule->on_error == OnError::stop;
    if (stops && meets_old_rows && compiled.condition->needs_old_row(plain_too)) {
      found.push_back({.rule = compiled.rule, .kinds = kinds});
    }
  });
  return found;
}

std::vector<const Rule*> TableRules::rules_of_long_values() const {
  std::vector<const Rule*> found;
  for_each_condition([&](const Compiled& compiled, uint8_t kinds) {
    const bool brings_in = may_lack_values_ && compiled.rule->subset;
    const bool reads = compiled.rule->on_error == OnError::stop && compiled.condition->reads_long_values();
    if ((kinds & kUpdate) != 0 && (reads || brings_in)) found.push_back(compiled.rule);
  });
  return found;
}

Judgement TableRules::stopped_by(const Unclear& unclear) {
  const bool has_failed = unclear.failure != Failure::none;
  return {.decision = has_failed ? Decision::failed : Decision::undecidable,
          .rule = unclear.rule,
          .failure = unclear.failure};
}

Judgement TableRules::judge(const lcr::FrameView& frame, const ChangeContext& context, Scratch& scratch, Row plain) {
  Finding negative;
  if (!negative_.empty()) negative = find_true(negative_, frame, context, scratch, plain);
  if (negative.is_true != nullptr) return {.decision = Decision::drop, .rule = negative.is_true};
  Finding positive;
  if (!positive_.empty()) positive = find_true(positive_, frame, context, scratch, plain);
  const bool lets_pass = positive.is_true != nullptr || otherwise_ == Decision::pass;
  // Where the positive set drops the change, it does not matter what the negative set could not decide.
  if (!lets_pass && !positive.is_unclear()) return {.decision = Decision::drop};
  if (lets_pass && !negative.is_unclear()) return {.decision = Decision::pass, .rule = positive.is_true};
  return judge_by_policy(negative, positive);
}

Judgement TableRules::judge_by_policy(const Finding& negative, const Finding& positive) const {
  const auto decided = [](Decision decision, const Unclear& by) {
    return Judgement{.decision = decision, .rule = by.rule, .failure = by.failure, .by_policy = by.rule};
  };
  const Unclear& dropping = negative.of(OnError::as_true);
  if (dropping.rule != nullptr) return decided(Decision::drop, dropping);
  const bool lets_pass = positive.is_true != nullptr || otherwise_ == Decision::pass;
  const Unclear& passing = positive.of(OnError::as_true);
  const bool may_pass = lets_pass || passing.rule != nullptr;
  const Unclear& open = positive.of(OnError::stop);
  if (!may_pass && open.rule == nullptr) return decided(Decision::drop, positive.of(OnError::as_false));
  if (negative.of(OnError::stop).rule != nullptr) return stopped_by(negative.of(OnError::stop));
  if (!may_pass) return stopped_by(open);
  return decided(Decision::pass, lets_pass ? negative.of(OnError::as_false) : passing);
}

}  // namespace thalweg::rules
