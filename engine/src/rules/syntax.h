#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rules/rule_error.h"

namespace thalweg::rules {

enum class Syntax : uint8_t {
  null,       // NULL
  boolean,    // text: true or false
  integer,    // text: digits, perhaps with a sign
  decimal,    // text: digits with a point or an exponent, perhaps with a sign
  string,     // text: of no type yet
  column,     // text: name; row
  attribute,  // text: schema, table, operation, tag, source, commit_time
  unary,      // text: +, - or ~; one argument
  binary,     // text: operator; two arguments
  all,        // AND of all arguments
  any,        // OR of all arguments
  negation,
  is_null,
  is_true,
  is_false,
  is_unknown,
  distinct,   // IS DISTINCT FROM
  in,         // first argument IN the others
  between,    // three arguments
  symmetric,  // BETWEEN SYMMETRIC
  choice,     // CASE: pairs of condition and result, then the result otherwise (may be a NULL)
  matched,    // CASE x: x, then as in `choice`
  cast,       // text: the type's name; modifier
  function,   // text: name
  coalesce,
  extreme,  // text: greatest or least
  nullif,
  collate,  // text: the collation's name
};

enum class Row : uint8_t { newest, before, after };  // col, old.col, new.col

// A node of a condition's text. Immutable once parsed.
struct Expression {
  Syntax kind = Syntax::null;
  uint32_t offset = 0;
  std::string text;
  Row row = Row::newest;
  bool negated = false;            // IS NOT, NOT IN, NOT BETWEEN
  std::vector<int32_t> modifiers;  // of a cast's type
  std::vector<Expression> arguments;
  uint32_t height = 1;  // nodes from here to the deepest leaf
};

}  // namespace thalweg::rules
