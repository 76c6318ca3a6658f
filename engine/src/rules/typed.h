#pragma once

#include <deque>
#include <string>
#include <vector>

#include "rules/evaluators.h"
#include "rules/rule_table.h"
#include "rules/syntax.h"

namespace thalweg::rules {

enum class Meaning : uint8_t {
  constant,
  column,
  attribute,
  subject,  // the value of the `let` whose slot it names
  let,      // the second argument, in which `subject` is the first
  call,     // strict
  all,
  any,
  negation,
  is_null,
  is_true,
  is_false,
  is_unknown,
  distinct,  // the evaluator tests equality
  nullif,    // likewise
  in,        // the first argument equal to one of the others; all of these have a value or fail before any is compared
  choice,    // pairs of condition and result, then the result otherwise
  coalesce,
  extreme,  // GREATEST, or LEAST where it is negated; the evaluator tells whether another argument takes its place
};

enum class Attribute : uint8_t { schema, table, operation, tag, source, commit_time };

// How strongly a text's collation was chosen: PostgreSQL's derivation of collations.
enum class Strength : uint8_t { none, by_default, implicit, conflict, explicitly };

// A node whose type is known and whose function is chosen. Constants' bytes lie in the condition's Strings.
struct Typed {
  Meaning meaning = Meaning::constant;
  Type type = Type::unknown;
  Type stored =
      Type::unknown;  // of `column` and `attribute`: the type of its bytes, where a cast has only relabelled it
  uint32_t offset = 0;
  bool negated = false;
  Strength strength = Strength::none;
  Collation collation = Collation::other;
  Row row = Row::newest;
  Attribute attribute = Attribute::schema;
  uint16_t column = 0;  // of `column`; slot of `let` and `subject`
  Datum constant;
  const Evaluator* evaluator = nullptr;
  const RuleColumn* enumeration = nullptr;  // the column whose enum type the value has
  std::vector<Typed> arguments;
};

// Addresses stay as the condition grows and moves.
using Strings = std::deque<std::string>;

// Chooses types and functions as PostgreSQL does; the result is boolean. `table` must outlive what is returned.
Ruled<Typed> type_condition(const Expression& expression, const RuleTable& table, Strings& strings);

// The same of any type. As a value of a row's column: what has no type of its own was cast to one.
Ruled<Typed> type_expression(const Expression& expression, const RuleTable& table, Strings& strings);

// Computes what is constant, as PostgreSQL's planner does: an error there is an error for every row, so it is refused.
Ruled<void> fold(Typed& node, Scratch& scratch, Strings& strings);

bool is_text(Type type);
// Whether the value depends on the change: its row or its attributes.
bool has_columns(const Typed& node);

}  // namespace thalweg::rules
