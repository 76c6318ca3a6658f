#include <algorithm>

#include "rules/program.h"
#include "rules/typed.h"

namespace thalweg::rules {

namespace {

bool is_constant(const Typed& node) { return node.meaning == Meaning::constant; }
bool is_null(const Typed& node) { return is_constant(node) && node.constant.state == State::null; }
bool is_boolean(const Typed& node, bool value) {
  return is_constant(node) && node.constant.state == State::value && (node.constant.integer != 0) == value;
}

// Puts `value` in the place of every `subject` of the slot.
void substitute(Typed& node, uint16_t slot, const Typed& value) {
  if (node.meaning == Meaning::subject && node.column == slot) {
    node = Typed(value);
    return;
  }
  for (Typed& argument : node.arguments) substitute(argument, slot, value);
}

void become(Typed& node, Typed other) {
  // A copy that outlives the arguments it may come from.
  const Type type = node.type;
  node = std::move(other);
  node.type = type;
}

void become_null(Typed& node) {
  Typed null;
  null.type = node.type;
  null.offset = node.offset;
  null.strength = node.strength;
  null.collation = node.collation;
  node = std::move(null);
}

bool has_bytes(Type type) {
  return is_text(type) || type == Type::numeric || type == Type::bytea || type == Type::uuid || type == Type::jsonb ||
         type == Type::any_enum;
}

Ruled<void> fold_arguments(Typed& node, Scratch& scratch, Strings& strings) {
  for (Typed& argument : node.arguments) RULES_TRY(fold(argument, scratch, strings));
  return {};
}

// Computes an expression that depends on no row, by the program that every row would run.
Ruled<void> compute(Typed& node, Scratch& scratch, Strings& strings) {
  Program program(node);
  scratch.clear_memory();  // all parts of the expression share its steps
  const Datum result = program.value(scratch);
  if (program.failure() != Failure::none) {
    return refuse("this fails for every row: " + std::string(message_of(program.failure())) + " (SQLSTATE " +
                      std::string(sqlstate_of(program.failure())) + ")",
                  node.offset);
  }
  Typed constant;
  constant.type = node.type;
  constant.offset = node.offset;
  constant.strength = node.strength;
  constant.collation = node.collation;
  constant.enumeration = node.enumeration;
  constant.constant = result;
  if (result.state == State::value && has_bytes(node.type)) {
    strings.emplace_back(result.text());
    give_text(constant.constant, strings.back());
  }
  node = std::move(constant);
  return {};
}

Ruled<void> fold_call(Typed& node, Scratch& scratch, Strings& strings) {
  RULES_TRY(fold_arguments(node, scratch, strings));
  if (std::ranges::any_of(node.arguments, is_null)) {
    become_null(node);
    return {};
  }
  if (!std::ranges::all_of(node.arguments, is_constant)) return {};
  return compute(node, scratch, strings);
}

// AND and OR: nothing behind what decides is looked at.
Ruled<void> fold_logical(Typed& node, bool decisive, Scratch& scratch, Strings& strings) {
  std::vector<Typed> kept;
  for (Typed& argument : node.arguments) {
    RULES_TRY(fold(argument, scratch, strings));
    if (is_boolean(argument, !decisive)) continue;
    kept.push_back(std::move(argument));
    if (is_boolean(kept.back(), decisive)) {
      become(node, Typed(kept.back()));
      return {};
    }
  }
  if (kept.empty()) {
    Typed constant;
    constant.type = Type::boolean;
    constant.offset = node.offset;
    constant.constant.integer = decisive ? 0 : 1;
    constant.constant.state = State::value;
    node = std::move(constant);
  } else if (kept.size() == 1) {
    node = Typed(std::move(kept.front()));
  } else {
    node.arguments = std::move(kept);
  }
  return {};
}

Ruled<void> fold_choice(Typed& node, Scratch& scratch, Strings& strings) {
  std::vector<Typed> kept;
  size_t at = 0;
  for (; at + 1 < node.arguments.size(); at += 2) {
    Typed& condition = node.arguments[at];
    RULES_TRY(fold(condition, scratch, strings));
    if (is_boolean(condition, false) || is_null(condition)) continue;
    RULES_TRY(fold(node.arguments[at + 1], scratch, strings));
    if (is_boolean(condition, true)) {
      ++at;
      break;
    }
    kept.push_back(std::move(condition));
    kept.push_back(std::move(node.arguments[at + 1]));
  }
  if (at + 1 == node.arguments.size()) RULES_TRY(fold(node.arguments[at], scratch, strings));
  kept.push_back(std::move(node.arguments[at]));
  if (kept.size() == 1) {
    node = Typed(std::move(kept.front()));
  } else {
    node.arguments = std::move(kept);
  }
  return {};
}

Ruled<void> fold_coalesce(Typed& node, Scratch& scratch, Strings& strings) {
  std::vector<Typed> kept;
  for (Typed& argument : node.arguments) {
    RULES_TRY(fold(argument, scratch, strings));
    if (is_null(argument)) continue;
    kept.push_back(std::move(argument));
    if (is_constant(kept.back())) break;
  }
  if (kept.empty()) {
    become_null(node);
  } else if (kept.size() == 1) {
    node = Typed(std::move(kept.front()));
  } else {
    node.arguments = std::move(kept);
  }
  return {};
}

// A first argument that is constant goes into the second, which may decide its branches.
Ruled<void> fold_let(Typed& node, Scratch& scratch, Strings& strings) {
  RULES_TRY(fold(node.arguments[0], scratch, strings));
  if (!is_constant(node.arguments[0])) return fold(node.arguments[1], scratch, strings);
  Typed body = std::move(node.arguments[1]);
  substitute(body, node.column, node.arguments[0]);
  node = std::move(body);
  return fold(node, scratch, strings);
}

}  // namespace

Ruled<void> fold(Typed& node, Scratch& scratch, Strings& strings) {
  switch (node.meaning) {
    case Meaning::call:
      return fold_call(node, scratch, strings);
    case Meaning::all:
      return fold_logical(node, false, scratch, strings);
    case Meaning::any:
      return fold_logical(node, true, scratch, strings);
    case Meaning::choice:
      return fold_choice(node, scratch, strings);
    case Meaning::coalesce:
      return fold_coalesce(node, scratch, strings);
    case Meaning::let:
      return fold_let(node, scratch, strings);
    case Meaning::constant:
    case Meaning::column:
    case Meaning::attribute:
    case Meaning::subject:
      return {};
    default:
      RULES_TRY(fold_arguments(node, scratch, strings));
      return std::ranges::all_of(node.arguments, is_constant) ? compute(node, scratch, strings) : Ruled<void>();
  }
}

}  // namespace thalweg::rules
