#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rules/evaluators.h"
#include "rules/numeric.h"
#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

template <auto Operation>
Failure binary(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return Operation(scratch, a, b, out);
}
template <auto Operation>
Failure unary(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return Operation(scratch, a, out);
}
template <Rounding How>
Failure round_to_scale(Scratch& scratch, const Datum& a, const Datum& scale, const Datum&, Datum& out) {
  return numeric_round(scratch, a, scale.integer, How, out);
}
template <Rounding How>
Failure round_whole(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return numeric_round(scratch, a, 0, How, out);
}
Failure same(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) { return give_text(out, a.text()); }
// numeric(precision, scale); b is the type modifier.
Failure fit(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return numeric_fit(scratch, a, static_cast<int32_t>(b.integer >> 16), static_cast<int32_t>(b.integer & 0xFFFF), out);
}

Failure from_integer(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return numeric_from_integer(scratch, a.integer, out);
}
template <int Digits>
Failure from_real(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return numeric_from_real(scratch, a.real, Digits, out);
}
template <typename Integer>
Failure to_integer(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  using Limits = std::numeric_limits<Integer>;
  return numeric_to_integer(scratch, a, Limits::min(), Limits::max(), out);
}
template <Type Real>
Failure to_real(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  Datum text;
  if (const Failure failure = numeric_to_text(scratch, a, text); failure != Failure::none) return failure;
  return input(scratch, Real, text.text(), out);
}

constexpr std::array kEvaluators{
    Evaluator{"numeric_eq", compare<compare_numeric, Equal>},
    Evaluator{"numeric_ne", compare<compare_numeric, NotEqual>},
    Evaluator{"numeric_lt", compare<compare_numeric, Less>},
    Evaluator{"numeric_le", compare<compare_numeric, LessEqual>},
    Evaluator{"numeric_gt", compare<compare_numeric, Greater>},
    Evaluator{"numeric_ge", compare<compare_numeric, GreaterEqual>}, Evaluator{"numeric_add", binary<numeric_add>},
    Evaluator{"numeric_sub", binary<numeric_subtract>}, Evaluator{"numeric_mul", binary<numeric_multiply>},
    Evaluator{"numeric_div", binary<numeric_divide>}, Evaluator{"numeric_mod", binary<numeric_remainder>},
    Evaluator{"numeric_uminus", unary<numeric_negate>}, Evaluator{"numeric_uplus", same},
    Evaluator{"numeric_abs", unary<numeric_absolute>}, Evaluator{"numeric_sign", unary<numeric_sign>},
    Evaluator{"numeric_round", round_to_scale<Rounding::half_away>},
    Evaluator{"round_1700_sql", round_whole<Rounding::half_away>},
    Evaluator{"numeric_trunc", round_to_scale<Rounding::toward_zero>},
    Evaluator{"trunc_1700_sql", round_whole<Rounding::toward_zero>},
    Evaluator{"numeric_ceil", round_whole<Rounding::up>}, Evaluator{"numeric_floor", round_whole<Rounding::down>},
    // Casts
    Evaluator{"numeric", fit}, Evaluator{"int2_numeric", from_integer}, Evaluator{"int4_numeric", from_integer},
    Evaluator{"int8_numeric", from_integer}, Evaluator{"float4_numeric", from_real<6>},
    Evaluator{"float8_numeric", from_real<15>}, Evaluator{"numeric_int2", to_integer<int16_t>},
    Evaluator{"numeric_int4", to_integer<int32_t>}, Evaluator{"numeric_int8", to_integer<int64_t>},
    Evaluator{"numeric_float4", to_real<Type::float4>}, Evaluator{"numeric_float8", to_real<Type::float8>}};

}  // namespace

std::span<const Evaluator> numeric_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
