#include "daemon/rule_sets.h"

#include <algorithm>

namespace thalweg::daemon {
namespace {

uint8_t kinds_of(const std::set<control::RuledOperation>& operations) {
  if (operations.empty()) return rules::kEveryKind;
  uint8_t kinds = 0;
  for (const control::RuledOperation operation : operations) {
    switch (operation) {
      case control::RuledOperation::insert:
        kinds |= rules::kInsert;
        break;
      case control::RuledOperation::update:
        kinds |= rules::kUpdate;
        break;
      case control::RuledOperation::remove:
        kinds |= rules::kDelete;
        break;
      case control::RuledOperation::truncate:
        kinds |= rules::kTruncate;
        break;
    }
  }
  return kinds;
}

rules::Scope scope_of(control::RuleScope scope) {
  switch (scope) {
    case control::RuleScope::schema:
      return rules::Scope::schema;
    case control::RuleScope::global:
      return rules::Scope::global;
    case control::RuleScope::table:
      break;
  }
  return rules::Scope::table;
}

rules::OnError on_error_of(control::OnRuleError on_error) {
  switch (on_error) {
    case control::OnRuleError::as_true:
      return rules::OnError::as_true;
    case control::OnRuleError::as_false:
      return rules::OnError::as_false;
    case control::OnRuleError::stop:
      break;
  }
  return rules::OnError::stop;
}

// Without schema and table: the sets are of one table, and stay its rules under another name.
std::vector<rules::Rule> rule_set(const std::vector<control::RuleDefinition>& definitions) {
  std::vector<rules::Rule> set;
  for (const control::RuleDefinition& rule : definitions) {
    set.push_back({.name = rule.name,
                   .schema = {},
                   .table = {},
                   .kinds = kinds_of(rule.operations),
                   .condition = rule.condition,
                   .subset = rule.subset,
                   .scope = scope_of(rule.scope),
                   .on_error = on_error_of(rule.on_error)});
  }
  return set;
}

}  // namespace

rules::RuleSets rule_sets(const control::RulesDefinition& definition) {
  rules::RuleSets sets;
  if (definition.negative) sets.negative = rule_set(*definition.negative);
  if (definition.positive) sets.positive = rule_set(*definition.positive);
  return sets;
}

namespace {

transform::Mask mask_of(const control::TransformationDefinition& definition, const std::string& key) {
  switch (definition.with) {
    case control::MaskWith::null:
      break;
    case control::MaskWith::constant:
      return {.kind = transform::MaskKind::constant, .value = definition.value};
    case control::MaskWith::partial:
      return {.kind = transform::MaskKind::partial,
              .value = {},
              .keep_first = definition.keep_first,
              .keep_last = definition.keep_last};
    case control::MaskWith::hash:
      return {.kind = transform::MaskKind::hash, .value = {}, .key = key};
    case control::MaskWith::digits:
      return {.kind = transform::MaskKind::digits, .value = {}, .key = key};
  }
  return {};
}

capture::StreamRules rules_of(const control::StreamDefinition& definition, const control::StreamParameters& parameters,
                              const control::TableRules& ruled) {
  capture::StreamRules rules;
  rules.source = definition.source.name;
  rules.stops_tables = parameters.stops_tables();
  for (const control::TableRef& table : definition.tables) {
    const auto found = ruled.find(table);
    if (found == ruled.end()) {
      rules.plain_tables.emplace(table.schema, table.table);
    } else {
      rules.tables.emplace(capture::TableKey(table.schema, table.table), rule_sets(found->second));
    }
  }
  return rules;
}

}  // namespace

transform::Steps steps_of(const control::Transformations& definitions, const std::string& key) {
  transform::Steps steps;
  for (const control::TransformationDefinition& definition : definitions) {
    transform::Step& step = steps.emplace_back();
    step.column = definition.column;
    switch (definition.type) {
      case control::TransformationType::drop_column:
        step.kind = transform::StepKind::drop_column;
        break;
      case control::TransformationType::rename_column:
        step.kind = transform::StepKind::rename_column;
        step.to = definition.to;
        break;
      case control::TransformationType::mask_column:
        step.kind = transform::StepKind::mask_column;
        step.mask = mask_of(definition, key);
        break;
      case control::TransformationType::keep_columns:
        step.kind = transform::StepKind::keep_columns;
        step.columns = definition.columns;
        break;
      case control::TransformationType::add_column:
        step.kind = transform::StepKind::add_column;
        step.type = definition.data_type;
        step.value = definition.value;
        step.expression = definition.expression;
        break;
      case control::TransformationType::cast_column:
        step.kind = transform::StepKind::cast_column;
        step.type = definition.data_type;
        break;
    }
  }
  return steps;
}

bool reads_transaction(const control::StreamDefinition& definition) {
  const auto any_reads = [](const control::TableRules& ruled) {
    return std::ranges::any_of(ruled,
                               [](const auto& rules) { return rules::reads_transaction(rule_sets(rules.second)); });
  };
  return any_reads(definition.rules) || std::ranges::any_of(definition.destinations, [&](const auto& destination) {
           return any_reads(destination.rules);
         });
}

capture::StreamRules stream_rules(const control::StreamDefinition& definition) {
  capture::StreamRules rules = rules_of(definition, definition.parameters, definition.rules);
  rules.reads_transaction = reads_transaction(definition);
  for (const auto& [table, definitions] : definition.transformations) {
    const capture::TableKey key(table.schema, table.table);
    rules.tables.try_emplace(key);
    rules.plain_tables.erase(key);
    rules.transformations.emplace(key, steps_of(definitions, definition.mask_key));
  }
  return rules;
}

capture::StreamRules destination_rules(const control::Delivery& delivery) {
  return rules_of(delivery.stream, delivery.destination.parameters, delivery.destination.rules);
}

}  // namespace thalweg::daemon
