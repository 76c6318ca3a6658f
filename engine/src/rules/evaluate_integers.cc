#include <array>
#include <limits>

#include "rules/evaluators.h"

// bool, int2, int4, int8. All lie in a Datum as int64_t; an operation's result has to fit its own type.

namespace thalweg::rules {

namespace {

template <typename Result>
Failure fit(Wide value, Datum& out) {
  if (value < std::numeric_limits<Result>::min() || value > std::numeric_limits<Result>::max()) {
    return Failure::out_of_range;
  }
  out.integer = static_cast<int64_t>(value);
  return Failure::none;
}

template <typename Result>
Failure add(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return fit<Result>(Wide{a.integer} + b.integer, out);
}
template <typename Result>
Failure subtract(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return fit<Result>(Wide{a.integer} - b.integer, out);
}
template <typename Result>
Failure multiply(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return fit<Result>(Wide{a.integer} * b.integer, out);
}
template <typename Result>
Failure divide(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (b.integer == 0) return Failure::division_by_zero;
  return fit<Result>(Wide{a.integer} / b.integer, out);
}
Failure remainder(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (b.integer == 0) return Failure::division_by_zero;
  out.integer = b.integer == -1 ? 0 : a.integer % b.integer;
  return Failure::none;
}
template <typename Result>
Failure negate(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return fit<Result>(-Wide{a.integer}, out);
}
template <typename Result>
Failure absolute(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return fit<Result>(a.integer < 0 ? -Wide{a.integer} : Wide{a.integer}, out);
}
template <typename Result>
Failure convert(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return fit<Result>(a.integer, out);
}
Failure same(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = a.integer;
  return Failure::none;
}
Failure is_not_zero(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = a.integer != 0 ? 1 : 0;
  return Failure::none;
}
Failure boolean_text(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return give_text(out, a.integer != 0 ? "true" : "false");
}

#define COMPARISONS(prefix)                                                                                            \
  Evaluator{prefix "eq", compare<integer_order, Equal>}, Evaluator{prefix "ne", compare<integer_order, NotEqual>},     \
      Evaluator{prefix "lt", compare<integer_order, Less>}, Evaluator{prefix "le", compare<integer_order, LessEqual>}, \
      Evaluator{prefix "gt", compare<integer_order, Greater>}, Evaluator {                                             \
    prefix "ge", compare<integer_order, GreaterEqual>                                                                  \
  }
#define ARITHMETIC(prefix, result)                                               \
  Evaluator{prefix "pl", add<result>}, Evaluator{prefix "mi", subtract<result>}, \
      Evaluator{prefix "mul", multiply<result>}, Evaluator {                     \
    prefix "div", divide<result>                                                 \
  }
#define SIGNS(prefix, result)                                                                               \
  Evaluator{prefix "mod", remainder}, Evaluator{prefix "um", negate<result>}, Evaluator{prefix "up", same}, \
      Evaluator {                                                                                           \
    prefix "abs", absolute<result>                                                                          \
  }

constexpr std::array kEvaluators{
    COMPARISONS("bool"), COMPARISONS("int2"), COMPARISONS("int4"), COMPARISONS("int8"), COMPARISONS("int24"),
    COMPARISONS("int42"), COMPARISONS("int28"), COMPARISONS("int82"), COMPARISONS("int48"), COMPARISONS("int84"),
    ARITHMETIC("int2", int16_t), ARITHMETIC("int4", int32_t), ARITHMETIC("int8", int64_t), ARITHMETIC("int24", int32_t),
    ARITHMETIC("int42", int32_t), ARITHMETIC("int28", int64_t), ARITHMETIC("int82", int64_t),
    ARITHMETIC("int48", int64_t), ARITHMETIC("int84", int64_t), SIGNS("int2", int16_t), SIGNS("int4", int32_t),
    SIGNS("int8", int64_t),
    // Casts
    Evaluator{"int82", convert<int16_t>}, Evaluator{"int84", convert<int32_t>}, Evaluator{"i4toi2", convert<int16_t>},
    Evaluator{"int28", same}, Evaluator{"int48", same}, Evaluator{"i2toi4", same}, Evaluator{"int4_bool", is_not_zero},
    Evaluator{"bool_int4", same}, Evaluator{"booltext", boolean_text}};

}  // namespace

std::span<const Evaluator> integer_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
