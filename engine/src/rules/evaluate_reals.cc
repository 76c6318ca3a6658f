#include <array>
#include <cmath>
#include <limits>

#include "rules/evaluators.h"

// float4 and float8. A float4 lies in a Datum as the double of the same value.

namespace thalweg::rules {

namespace {

// NaN equals NaN and is above all else.
int real_order(const Datum& a, const Datum& b) {
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) - std::isnan(b.real);
  return three_way(a.real, b.real);
}

template <typename Real>
Failure sum(Real a, Real b, Datum& out) {
  const Real result = a + b;
  if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) return Failure::out_of_range;
  out.real = result;
  return Failure::none;
}
template <typename Real>
Failure add(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return sum(static_cast<Real>(a.real), static_cast<Real>(b.real), out);
}
template <typename Real>
Failure subtract(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return sum(static_cast<Real>(a.real), -static_cast<Real>(b.real), out);
}
template <typename Real>
Failure multiply(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const Real left = static_cast<Real>(a.real);
  const Real right = static_cast<Real>(b.real);
  const Real result = left * right;
  if (std::isinf(result) && !std::isinf(left) && !std::isinf(right)) return Failure::out_of_range;
  if (result == 0 && left != 0 && right != 0) return Failure::out_of_range;
  out.real = result;
  return Failure::none;
}
template <typename Real>
Failure divide(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const Real left = static_cast<Real>(a.real);
  const Real right = static_cast<Real>(b.real);
  if (right == 0 && !std::isnan(left)) return Failure::division_by_zero;
  const Real result = left / right;
  if (std::isinf(result) && !std::isinf(left)) return Failure::out_of_range;
  if (result == 0 && left != 0 && !std::isinf(right)) return Failure::out_of_range;
  out.real = result;
  return Failure::none;
}

template <auto Operation>
Failure apply(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.real = Operation(a.real);
  return Failure::none;
}
double negated(double value) { return -value; }
double same(double value) { return value; }
double absolute(double value) { return std::fabs(value); }
double rounded(double value) { return std::rint(value); }
double cut(double value) { return std::trunc(value); }
double ceiling(double value) { return std::ceil(value); }
double floored(double value) { return std::floor(value); }
double sign(double value) { return value > 0 ? 1.0 : value < 0 ? -1.0 : 0.0; }

template <typename Real>
Failure from_integer(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.real = static_cast<Real>(a.integer);
  return Failure::none;
}
template <typename Integer>
Failure to_integer(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const double value = std::rint(a.real);
  const double low = static_cast<double>(std::numeric_limits<Integer>::min());
  if (!(value >= low && value < -low)) return Failure::out_of_range;
  out.integer = static_cast<int64_t>(value);
  return Failure::none;
}
Failure narrow(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const auto value = static_cast<float>(a.real);
  if (std::isinf(value) && !std::isinf(a.real)) return Failure::out_of_range;
  if (value == 0 && a.real != 0) return Failure::out_of_range;
  out.real = value;
  return Failure::none;
}

#define COMPARISONS(prefix)                                                                                      \
  Evaluator{prefix "eq", compare<real_order, Equal>}, Evaluator{prefix "ne", compare<real_order, NotEqual>},     \
      Evaluator{prefix "lt", compare<real_order, Less>}, Evaluator{prefix "le", compare<real_order, LessEqual>}, \
      Evaluator{prefix "gt", compare<real_order, Greater>}, Evaluator {                                          \
    prefix "ge", compare<real_order, GreaterEqual>                                                               \
  }
#define ARITHMETIC(prefix, result)                                               \
  Evaluator{prefix "pl", add<result>}, Evaluator{prefix "mi", subtract<result>}, \
      Evaluator{prefix "mul", multiply<result>}, Evaluator {                     \
    prefix "div", divide<result>                                                 \
  }
#define SIGNS(prefix)                                                                      \
  Evaluator{prefix "um", apply<negated>}, Evaluator{prefix "up", apply<same>}, Evaluator { \
    prefix "abs", apply<absolute>                                                          \
  }

constexpr std::array kEvaluators{COMPARISONS("float4"), COMPARISONS("float8"), COMPARISONS("float48"),
                                 COMPARISONS("float84"), ARITHMETIC("float4", float), ARITHMETIC("float8", double),
                                 ARITHMETIC("float48", double), ARITHMETIC("float84", double), SIGNS("float4"),
                                 SIGNS("float8"), Evaluator{"dround", apply<rounded>}, Evaluator{"dtrunc", apply<cut>},
                                 Evaluator{"dceil", apply<ceiling>}, Evaluator{"dfloor", apply<floored>},
                                 Evaluator{"dsign", apply<sign>},
                                 // Casts
                                 Evaluator{"i2tof", from_integer<float>}, Evaluator{"i4tof", from_integer<float>},
                                 Evaluator{"i8tof", from_integer<float>}, Evaluator{"i2tod", from_integer<double>},
                                 Evaluator{"i4tod", from_integer<double>}, Evaluator{"i8tod", from_integer<double>},
                                 Evaluator{"ftoi2", to_integer<int16_t>}, Evaluator{"ftoi4", to_integer<int32_t>},
                                 Evaluator{"ftoi8", to_integer<int64_t>}, Evaluator{"dtoi2", to_integer<int16_t>},
                                 Evaluator{"dtoi4", to_integer<int32_t>}, Evaluator{"dtoi8", to_integer<int64_t>},
                                 Evaluator{"ftod", apply<same>}, Evaluator{"dtof", narrow}};

}  // namespace

std::span<const Evaluator> real_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
