#pragma once

#include "rules/catalogue.h"
#include "rules/typed.h"

namespace thalweg::rules {

// A cast of PostgreSQL's that goes through the type's text.
struct TextCast {
  Type type;
  Evaluator evaluator;
};
std::span<const TextCast> casts_from_text();  // to types whose input function is immutable
std::span<const TextCast> casts_to_text();    // from types whose text depends on no setting

// Conversions between types. Owner: one condition's typing; table and strings outlive it.
class Casting {
 public:
  Casting(const RuleTable& table, Strings& strings) : table_(table), strings_(strings) {}

  // Implicit conversion as PostgreSQL does it, once it has chosen `target`. A literal becomes a value of that type, or
  // is refused. A literal for an enum has to be a label of `enumeration`.
  Ruled<Typed> to(Typed node, Type target, const RuleColumn* enumeration = nullptr);
  // CAST, `::` and `type '...'`.
  Ruled<Typed> explicitly(Typed node, const Expression& cast);

 private:
  Ruled<Typed> literal(Typed node, Type target, const RuleColumn* enumeration);
  Ruled<Typed> through_text(Typed node, Type target);
  Ruled<Typed> to_size(Typed node, const std::vector<int32_t>& modifiers);
  Typed call(const Evaluator* evaluator, Type result, Typed node) const;

  const RuleTable& table_;
  Strings& strings_;
  Scratch scratch_;
};

}  // namespace thalweg::rules
