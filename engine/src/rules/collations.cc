#include "rules/collations.h"

namespace thalweg::rules {

namespace {

Ruled<void> refuse_other_collations(const Typed& call, Collates collates) {
  if (call.strength == Strength::conflict) {
    return refuse("two columns' collations contradict each other", call.offset);
  }
  if (call.collation == Collation::nondeterministic) {
    return refuse("the collation makes different texts equal; add COLLATE \"C\"", call.offset);
  }
  if (collates == Collates::order && call.collation != Collation::c) {
    return refuse("the result depends on the collation; add COLLATE \"C\"", call.offset);
  }
  return {};
}

}  // namespace

Ruled<void> derive_collation(Typed& call) {
  for (const Typed& argument : call.arguments) {
    if (argument.strength > call.strength) {
      call.strength = argument.strength;
      call.collation = argument.collation;
    } else if (argument.strength == call.strength && argument.collation != call.collation) {
      if (call.strength == Strength::explicitly) return refuse("two collations contradict each other", call.offset);
      if (call.strength == Strength::implicit) call.strength = Strength::conflict;
    }
  }
  const Collates collates = call.evaluator == nullptr ? Collates::nothing : call.evaluator->collates;
  if (call.strength != Strength::none && collates != Collates::nothing) {
    RULES_TRY(refuse_other_collations(call, collates));
  }
  if (!is_text(call.type)) call.strength = Strength::none;
  return {};
}

Ruled<void> derive_collation_of_results(Typed& node) {
  if (!is_text(node.type)) return {};
  Typed results;
  results.type = node.type;
  results.offset = node.offset;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const bool is_condition = node.meaning == Meaning::choice && i % 2 == 0 && i + 1 < node.arguments.size();
    if (is_condition) continue;
    Typed& result = results.arguments.emplace_back();
    result.strength = node.arguments[i].strength;
    result.collation = node.arguments[i].collation;
  }
  RULES_TRY(derive_collation(results));
  node.strength = results.strength;
  node.collation = results.collation;
  return {};
}

}  // namespace thalweg::rules
