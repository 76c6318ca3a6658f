#include "daemon/rules_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "daemon/rule_sets.h"
#include "instantiation/catalogue.h"
#include "instantiation/sent_table.h"
#include "rules/rule_errors.h"
#include "rules/source_table.h"

namespace thalweg::daemon {
namespace {

using control::RuleProblem;

std::string code_of(base::ErrorCode code) { return std::string(base::name_of(code)); }

RuleProblem missing(const control::TableRef& name) {
  return {.schema = name.schema,
          .table = name.table,
          .code = code_of(base::ErrorCode::missing_table),
          .message = fmt::format("{} does not exist at the source.", pg::quote_table(name.schema, name.table))};
}

// Sets with one rule each, so that the first refusal does not hide the others.
std::vector<rules::RuleSets> one_by_one(const rules::RuleSets& sets) {
  std::vector<rules::RuleSets> single;
  if (sets.negative) {
    for (const rules::Rule& rule : *sets.negative) single.push_back({.negative = std::vector{rule}, .positive = {}});
  }
  if (sets.positive) {
    for (const rules::Rule& rule : *sets.positive) single.push_back({.negative = {}, .positive = std::vector{rule}});
  }
  return single;
}

lcr::FrameKind change_that_lacks(uint8_t kinds) {
  return (kinds & rules::kDelete) != 0 ? lcr::FrameKind::remove : lcr::FrameKind::update;
}

// Reads as the whole of the table's rules makes them: one that makes a subset has them all read old rows.
void find_undecidable(const rules::RuleSets& sets, const rules::RuleTable& table, std::vector<RuleProblem>& out) {
  const auto compiled = rules::TableRules::compile(sets, table);
  if (!compiled) return;  // a problem already
  const auto add = [&](const rules::Rule& rule, const base::Error& error, bool is_certain) {
    out.push_back({.schema = table.schema,
                   .table = table.name,
                   .rule = rule.name,
                   .code = code_of(error.code),
                   .message = error.message,
                   .place = {},
                   .is_certain = is_certain});
  };
  const std::vector<rules::OldRowRead> certain = compiled->rules_of_old_rows();
  for (const auto& [rule, kinds] : certain) {
    const rules::Judgement judgement{.decision = rules::Decision::undecidable, .rule = rule};
    add(*rule, rules::error_of(judgement, table, change_that_lacks(kinds)), true);
  }
  for (const rules::Rule* const rule : compiled->rules_of_long_values()) {
    const bool is_certain = std::ranges::find(certain, rule, &rules::OldRowRead::rule) != certain.end();
    if (!is_certain) add(*rule, rules::perhaps_undecidable(*rule, table), false);
  }
}

base::Result<void> fit(pg::Connection& source, const instantiation::TableShape& shape, const transform::Steps& steps) {
  THALWEG_TRY(instantiation::sent_table(source, shape, steps));
  const transform::Step& last = steps.back();
  const bool has_constant =
      (last.kind == transform::StepKind::add_column && last.expression.empty()) ||
      (last.kind == transform::StepKind::mask_column && last.mask.kind == transform::MaskKind::constant);
  return has_constant ? instantiation::check_constants(source, shape, steps) : base::Result<void>{};
}

// Troubles that only an update meets that leaves a long value as it was.
base::Result<void> find_lacking_values(pg::Connection& source, const control::TableRef& name,
                                       const instantiation::TableShape& shape, const transform::Steps& steps,
                                       std::vector<RuleProblem>& out) {
  THALWEG_ASSIGN(const auto messages, instantiation::values_that_may_lack(source, shape, steps));
  for (const std::string& message : messages) {
    out.push_back({.schema = name.schema,
                   .table = name.table,
                   .code = code_of(base::ErrorCode::transformation_refused),
                   .message = message,
                   .is_certain = false});
  }
  return {};
}

base::Result<void> find_transformation_troubles(pg::Connection& source, const control::RulesCheckRequest& request,
                                                std::vector<RuleProblem>& out) {
  instantiation::Catalogue catalogue(source);
  THALWEG_TRY(catalogue.open());
  for (const auto& [name, definitions] : request.transformations) {
    THALWEG_ASSIGN(const auto shape, catalogue.table({name.schema, name.table}));
    if (!shape) {
      out.push_back(missing(name));
      continue;
    }
    // With one more each time: the first that does not fit is the one to correct.
    const transform::Steps steps = steps_of(definitions, {});
    bool fit_all = true;
    for (size_t step = 0; fit_all && step < steps.size(); ++step) {
      const auto fits = fit(source, *shape, {steps.begin(), steps.begin() + static_cast<ptrdiff_t>(step) + 1});
      if (fits) continue;
      if (fits.error().code != base::ErrorCode::transformation_refused) return fits;
      fit_all = false;
      out.push_back({.schema = name.schema,
                     .table = name.table,
                     .step = step,
                     .code = code_of(fits.error().code),
                     .message = fits.error().message});
    }
    if (fit_all && !request.inserts_only.contains(name)) {
      THALWEG_TRY(find_lacking_values(source, name, *shape, steps, out));
    }
  }
  return {};
}

}  // namespace

base::Result<std::vector<RuleProblem>> find_rule_troubles(pg::Connection& source,
                                                          const control::RulesCheckRequest& request,
                                                          const RulesTime& time) {
  std::vector<RuleProblem> problems;
  for (const auto& [name, definition] : request.rules) {
    THALWEG_ASSIGN(const auto table, rules::read_table(source, name.schema, name.table));
    if (!table) {
      problems.push_back(missing(name));
      continue;
    }
    const rules::RuleSets sets = rule_sets(definition);
    for (const rules::RuleSets& single : one_by_one(sets)) {
      THALWEG_TRY(time.check());
      const auto compiled = rules::TableRules::compile(single, *table);
      if (compiled) continue;
      const rules::RuleError& error = compiled.error().error;
      problems.push_back(
          {.schema = name.schema,
           .table = name.table,
           .rule = compiled.error().rule,
           .code = code_of(base::ErrorCode::rule_refused),
           .message = error.message,
           .place = control::RulePlace{.line = error.line, .column = error.column, .offset = error.offset}});
    }
    if (!request.inserts_only.contains(name)) find_undecidable(sets, *table, problems);
  }
  if (!request.transformations.empty()) THALWEG_TRY(find_transformation_troubles(source, request, problems));
  return problems;
}

}  // namespace thalweg::daemon
