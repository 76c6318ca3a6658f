#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rules/evaluators.h"
#include "rules/numeric.h"
#include "rules/numeric_parts.h"

// Whole quotients and common divisors of numerics, and how many decimals they have; square roots of floats.

namespace thalweg::rules {

namespace {

bool special(const Datum& value) { return (numeric_sign_of(value) & 0xC000) == 0xC000; }

Failure with_scale(Scratch& scratch, const Datum& a, int32_t scale, Datum& out) {
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  parts.scale = scale;
  return put_together(scratch, parts, out);
}

Failure whole_quotient(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return numeric_whole_quotient(scratch, a, b, out);
}

// Euclid's. Both are finite.
Failure divisor_of(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  Datum larger, smaller;
  if (const Failure failure = numeric_absolute(scratch, a, larger); failure != Failure::none) return failure;
  if (const Failure failure = numeric_absolute(scratch, b, smaller); failure != Failure::none) return failure;
  if (compare_numeric(larger, smaller) < 0) std::swap(larger, smaller);
  while (signum(smaller) != 0) {
    Datum rest;
    const Failure failure = numeric_remainder(scratch, larger, smaller, rest);
    if (failure != Failure::none) return failure;
    larger = smaller;
    smaller = rest;
  }
  return with_scale(scratch, larger, std::max(numeric_scale_of(a), numeric_scale_of(b)), out);
}
Failure common_divisor(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (special(a) || special(b)) return put_special(scratch, kNan, out);
  return divisor_of(scratch, a, b, out);
}
Failure common_multiple(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (special(a) || special(b)) return put_special(scratch, kNan, out);
  const int32_t scale = std::max(numeric_scale_of(a), numeric_scale_of(b));
  if (signum(a) == 0 || signum(b) == 0) {
    return put_together(scratch, {.digits = nullptr, .count = 0, .weight = 0, .scale = scale, .sign = kPositive}, out);
  }
  Datum divisor, parts, product, positive;
  if (const Failure failure = divisor_of(scratch, a, b, divisor); failure != Failure::none) return failure;
  if (const Failure failure = numeric_whole_quotient(scratch, a, divisor, parts); failure != Failure::none)
    return failure;
  if (const Failure failure = numeric_multiply(scratch, b, parts, product); failure != Failure::none) return failure;
  if (const Failure failure = numeric_absolute(scratch, product, positive); failure != Failure::none) return failure;
  return with_scale(scratch, positive, scale, out);
}

Failure scale_of(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (special(a)) out.state = State::null;
  out.integer = numeric_scale_of(a);
  return Failure::none;
}
// Decimals up to the last one that is not zero.
int32_t least_scale(const Parts& parts) {
  int32_t scale = (parts.count - parts.weight - 1) * kBaseDigits;
  if (parts.count == 0 || scale <= 0) return 0;
  for (int32_t last = parts.digits[parts.count - 1]; last % 10 == 0; last /= 10) --scale;
  return scale;
}
Failure least_scale_of(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (special(a)) {
    out.state = State::null;
    return Failure::none;
  }
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  out.integer = least_scale(parts);
  return Failure::none;
}
Failure to_least_scale(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (special(a)) return give_text(out, a.text());
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  parts.scale = least_scale(parts);
  return put_together(scratch, parts, out);
}

Failure square_root(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (a.real < 0) return Failure::invalid_root;
  out.real = std::sqrt(a.real);
  return Failure::none;
}

constexpr std::array kEvaluators{Evaluator{"numeric_div_trunc", whole_quotient},
                                 Evaluator{"numeric_gcd", common_divisor},
                                 Evaluator{"numeric_lcm", common_multiple},
                                 Evaluator{"numeric_scale", scale_of},
                                 Evaluator{"numeric_min_scale", least_scale_of},
                                 Evaluator{"numeric_trim_scale", to_least_scale},
                                 Evaluator{"dsqrt", square_root}};

}  // namespace

std::span<const Evaluator> divisor_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
