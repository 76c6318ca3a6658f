// Generated handlers of conflicts and detection: a text for the engine, and for the model.

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "simulation/conflicts.h"

namespace thalweg::simulation {

namespace {

using Action = ConflictRules::Action;

telemetry::ConflictKind kind_of(Conflict kind) {
  const auto found = std::ranges::find(telemetry::kConflictKindNames, name_of(kind));
  return static_cast<telemetry::ConflictKind>(found - telemetry::kConflictKindNames.begin());
}

// The others have nothing that could be overwritten.
bool can_overwrite(Conflict kind) {
  return kind == Conflict::insert_exists || kind == Conflict::update_missing ||
         kind == Conflict::update_origin_differs || kind == Conflict::delete_origin_differs;
}

constexpr const char* kCheckViolation = "23514";

}  // namespace

// The first that matches decides; a handler of a kind also decides about what is a case of it.
Action ConflictRules::action_of(Conflict kind, Conflict general, int table) const {
  const auto found = std::ranges::find_if(handlers, [&](const Handler& handler) {
    return (handler.kind == kind || handler.kind == general) && (handler.table < 0 || handler.table == table);
  });
  return found == handlers.end() ? Action::skip : found->action;
}

// Policies leave out what no handler settles, and a row that does not please: nothing stops the stream.
void ConflictRules::write(control::StreamParameters& parameters) const {
  for (const Handler& handler : handlers) {
    control::ConflictHandlerDefinition definition;
    definition.kind = kind_of(handler.kind);
    if (handler.table >= 0) {
      definition.schema = "public";
      definition.table = shapes()[static_cast<size_t>(handler.table)].name;
    }
    definition.action = handler.action == Action::overwrite ? telemetry::ConflictAction::overwrite
                        : handler.action == Action::discard ? telemetry::ConflictAction::discard
                                                            : telemetry::ConflictAction::error;
    parameters.conflict_handlers.push_back(definition);
  }
  for (size_t table = 0; table < shapes().size(); ++table) {
    if (compared[table].empty()) continue;
    control::ComparedTableDefinition definition{.schema = "public", .table = shapes()[table].name, .columns = {}};
    for (const size_t column : compared[table])
      definition.columns.push_back(shapes_there()[table].columns[column].name);
    parameters.conflict_detection.push_back(definition);
  }
  control::ErrorPolicyDefinition policy;
  policy.error = kCheckViolation;
  policy.action = retries > 0 ? control::PolicyAction::retry : control::PolicyAction::skip;
  policy.times = retries;
  policy.delay = std::chrono::seconds(1);
  policy.after_retries = control::PolicyAction::skip;
  if (!parks) parameters.error_policies.push_back(policy);
  parameters.disable_on_error = !parks;
  policy = {};
  policy.error = "apply_conflict";
  policy.action = control::PolicyAction::skip;
  parameters.error_policies.push_back(policy);
}

ConflictRules make_conflict_rules(Scheduler& scheduler, const std::vector<bool>& full_identity,
                                  const Transformations& transformations) {
  constexpr std::array kKinds = {Conflict::multiple_unique_conflicts,
                                 Conflict::insert_exists,
                                 Conflict::update_exists,
                                 Conflict::update_missing,
                                 Conflict::delete_missing,
                                 Conflict::update_origin_differs,
                                 Conflict::delete_origin_differs};
  ConflictRules rules;
  rules.full_identity = full_identity;
  for (const Conflict kind : kKinds) {
    const auto some_action = [&] {
      if (scheduler.chance(5)) return Action::skip;
      return can_overwrite(kind) && !scheduler.chance(3) ? Action::overwrite : Action::discard;
    };
    const bool has_own = scheduler.chance(3);
    const auto table = static_cast<int>(scheduler.random(shapes().size()));
    if (has_own) rules.handlers.push_back({.kind = kind, .table = table, .action = some_action()});
    if (!scheduler.chance(4)) rules.handlers.push_back({.kind = kind, .table = -1, .action = some_action()});
  }
  for (size_t table = 0; table < shapes().size(); ++table) {
    const TableShape& shape = shapes()[table];
    if (shape.key < 0 || scheduler.chance(3)) continue;
    for (size_t column = 0; column < shape.columns.size(); ++column) {
      const bool is_as_sent = !transformations[table] || transformations[table]->keeps_value(column);
      if (static_cast<int>(column) != shape.key && is_as_sent && !scheduler.chance(4)) {
        rules.compared[table].insert(column);
      }
    }
  }
  rules.retries = static_cast<int64_t>(scheduler.random(3));
  rules.parks = scheduler.chance(3);
  return rules;
}

std::string describe(const ConflictRules& rules) {
  constexpr std::array kActions = {"error", "discard", "overwrite"};
  std::string text;
  for (const ConflictRules::Handler& handler : rules.handlers) {
    text +=
        fmt::format("{}{}{} {}", text.empty() ? "" : ", ", name_of(handler.kind),
                    handler.table < 0 ? "" : fmt::format(" of {}", shapes()[static_cast<size_t>(handler.table)].name),
                    kActions[static_cast<size_t>(handler.action)]);
  }
  for (size_t table = 0; table < rules.compared.size(); ++table) {
    for (const size_t column : rules.compared[table]) {
      text += fmt::format("; {}.{} is compared", shapes()[table].name, shapes()[table].columns[column].name);
    }
  }
  return text;
}

}  // namespace thalweg::simulation
