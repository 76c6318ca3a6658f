#include "rules/numeric.h"

#include <algorithm>
#include <array>

#include "lcr/bytes.h"
#include "rules/decode.h"
#include "rules/numeric_parts.h"

namespace thalweg::rules {

namespace {

constexpr size_t kHead = 8;

template <typename T>
T field(const Datum& value, size_t offset) {
  return network_integer<T>(value.data + offset);
}

int32_t count_of(const Datum& value) { return field<uint16_t>(value, 0); }
int32_t weight_of(const Datum& value) { return field<int16_t>(value, 2); }
int32_t digit(const Datum& value, int32_t index) {
  return field<uint16_t>(value, kHead + 2 * static_cast<size_t>(index));
}

bool special(const Datum& value) { return (numeric_sign_of(value) & 0xC000) == 0xC000; }

// -INF, finite, +INF, NaN in this order.
int rank(Sign sign) { return sign == kMinusInfinity ? 0 : sign == kPlusInfinity ? 2 : sign == kNan ? 3 : 1; }

int compare_magnitudes(const Datum& a, const Datum& b) {
  const int32_t count_a = count_of(a);
  const int32_t count_b = count_of(b);
  if (count_a == 0 || count_b == 0) return (count_a > 0) - (count_b > 0);
  if (weight_of(a) != weight_of(b)) return weight_of(a) < weight_of(b) ? -1 : 1;
  for (int32_t i = 0; i < std::min(count_a, count_b); ++i) {
    if (digit(a, i) != digit(b, i)) return digit(a, i) < digit(b, i) ? -1 : 1;
  }
  return (count_a > count_b) - (count_a < count_b);
}

// Digits of `parts` that count kBase^weight.
int32_t at(const Parts& parts, int32_t weight) {
  const int32_t index = parts.weight - weight;
  return index < 0 || index >= parts.count ? 0 : parts.digits[index];
}

// |a| + |b|, or |a| - |b| where |a| >= |b|.
Failure combine(Scratch& scratch, const Parts& a, const Parts& b, bool subtract, uint16_t sign, Datum& out) {
  const int32_t high = std::max(a.weight, b.weight) + 1;
  const int32_t low = std::min(a.weight - a.count, b.weight - b.count) + 1;
  Parts sum{
      .digits = nullptr, .count = high - low + 1, .weight = high, .scale = std::max(a.scale, b.scale), .sign = sign};
  sum.digits = scratch.take_array<int32_t>(static_cast<size_t>(sum.count));
  if (sum.digits == nullptr) return Failure::too_large;
  int32_t carry = 0;
  for (int32_t weight = low; weight <= high; ++weight) {
    int32_t value = at(a, weight) + (subtract ? -at(b, weight) : at(b, weight)) + carry;
    carry = value >= kBase ? 1 : value < 0 ? -1 : 0;
    value -= carry * kBase;
    sum.digits[high - weight] = value;
  }
  return put_together(scratch, sum, out);
}

Failure add_signed(Scratch& scratch, const Datum& a, const Datum& b, bool negate_b, Datum& out) {
  Parts left, right;
  if (!take_apart(scratch, a, left) || !take_apart(scratch, b, right)) return Failure::too_large;
  if (negate_b && right.sign <= kNegative) right.sign = static_cast<uint16_t>(right.sign ^ kNegative);
  if (left.sign == right.sign) return combine(scratch, left, right, false, left.sign, out);
  const int order = compare_magnitudes(a, b);
  if (order >= 0) return combine(scratch, left, right, true, order == 0 ? uint16_t{kPositive} : left.sign, out);
  return combine(scratch, right, left, true, right.sign, out);
}

Sign opposite(Sign sign) {
  switch (sign) {
    case kPositive:
      return kNegative;
    case kNegative:
      return kPositive;
    case kPlusInfinity:
      return kMinusInfinity;
    case kMinusInfinity:
      return kPlusInfinity;
    default:
      return kNan;
  }
}

Failure add_special(Scratch& scratch, Sign a, Sign b, Datum& out) {
  const bool a_special = rank(a) != 1;
  const bool b_special = rank(b) != 1;
  if (a == kNan || b == kNan || (a_special && b_special && a != b)) return put_special(scratch, kNan, out);
  return put_special(scratch, a_special ? a : b, out);
}

// Long division in base 10000 (Knuth, volume 2, algorithm D): `quotient` digits of a/b, the first of which counts
// kBase^(weight of a - weight of b) and may be zero.
bool divide_digits(Scratch& scratch, const Parts& a, const Parts& b, int32_t quotient, int32_t* result) {
  const int32_t n = b.count;
  const int32_t length = quotient + n;
  auto* u = scratch.take_array<int64_t>(static_cast<size_t>(length) + 1);
  auto* v = scratch.take_array<int64_t>(static_cast<size_t>(n) + 1);
  if (u == nullptr || v == nullptr) return false;
  const int64_t factor = kBase / (b.digits[0] + 1);
  int64_t carry = 0;
  for (int32_t i = length; i >= 1; --i) {
    const int64_t value = (i - 1 < a.count ? a.digits[i - 1] : 0) * factor + carry;
    u[i] = value % kBase;
    carry = value / kBase;
  }
  u[0] = carry;
  carry = 0;
  for (int32_t i = n - 1; i >= 0; --i) {
    const int64_t value = b.digits[i] * factor + carry;
    v[i] = value % kBase;
    carry = value / kBase;
  }
  v[n] = 0;
  for (int32_t j = 0; j < quotient; ++j) {
    const int64_t top = u[j] * kBase + u[j + 1];
    int64_t guess = std::min<int64_t>(top / v[0], kBase - 1);
    while (n > 1 && guess * v[1] > (top - guess * v[0]) * kBase + u[j + 2]) --guess;
    int64_t borrow = 0;
    for (int32_t i = n; i >= 1; --i) {
      int64_t value = u[j + i] - guess * v[i - 1] - borrow;
      borrow = value < 0 ? (-value + kBase - 1) / kBase : 0;
      value += borrow * kBase;
      u[j + i] = value;
    }
    u[j] -= borrow;
    if (u[j] < 0) {
      --guess;
      int64_t over = 0;
      for (int32_t i = n; i >= 1; --i) {
        const int64_t value = u[j + i] + v[i - 1] + over;
        over = value >= kBase ? 1 : 0;
        u[j + i] = value - over * kBase;
      }
      u[j] += over;
    }
    result[j] = static_cast<int32_t>(guess);
  }
  return true;
}

// Of a product or a quotient, in those of texts: the longest numbers that PostgreSQL has can be multiplied once.
uint64_t digit_steps(int32_t left, int32_t right) {
  constexpr uint64_t kDigitsAtOnce = 8;
  return static_cast<uint64_t>(left) * static_cast<uint64_t>(right) / kDigitsAtOnce;
}

// a/b cut to `scale` decimals; neither is special, b is not zero.
Failure quotient(Scratch& scratch, const Parts& a, const Parts& b, int32_t scale, bool half_away, Parts& out) {
  const int32_t weight = a.weight - b.weight;
  const int32_t count = a.count == 0 ? 0 : std::max(weight + 1 + (scale + kBaseDigits - 1) / kBaseDigits + 2, 1);
  out = {.digits = scratch.take_array<int32_t>(static_cast<size_t>(count) + 1),
         .count = count,
         .weight = weight,
         .scale = scale,
         .sign = a.sign == b.sign ? kPositive : kNegative};
  if (out.digits == nullptr) return Failure::too_large;
  if (!scratch.spend(digit_steps(count, b.count))) return Failure::too_costly;
  *out.digits++ = 0;
  if (count > 0 && !divide_digits(scratch, a, b, count, out.digits)) return Failure::too_large;
  round_parts(out, scale, half_away);
  return Failure::none;
}

// How many decimals PostgreSQL gives a quotient: 16 significant digits, and no fewer decimals than an argument has.
int32_t quotient_scale(const Parts& a, const Parts& b) {
  const int32_t weight_a = a.count > 0 ? a.weight : 0;
  const int32_t weight_b = b.count > 0 ? b.weight : 0;
  const int32_t first_a = a.count > 0 ? a.digits[0] : 0;
  const int32_t first_b = b.count > 0 ? b.digits[0] : 0;
  const int32_t weight = weight_a - weight_b - (first_a <= first_b ? 1 : 0);
  return std::clamp(std::max({16 - weight * kBaseDigits, a.scale, b.scale}), 0, 1000);
}

}  // namespace

bool is_numeric(std::string_view bytes) {
  if (bytes.size() < kHead) return false;
  Datum value;
  value.data = bytes.data();
  const auto sign = field<uint16_t>(value, 4);
  const int32_t count = count_of(value);
  if (bytes.size() != kHead + 2 * static_cast<size_t>(count)) return false;
  if (sign != kPositive && sign != kNegative) {
    return count == 0 && (sign == kNan || sign == kPlusInfinity || sign == kMinusInfinity);
  }
  if (numeric_scale_of(value) > kScaleMax) return false;
  for (int32_t i = 0; i < count; ++i) {
    if (digit(value, i) >= kBase) return false;
  }
  return count == 0 || (digit(value, 0) != 0 && digit(value, count - 1) != 0);
}

Sign numeric_sign_of(const Datum& value) { return static_cast<Sign>(field<uint16_t>(value, 4)); }
int32_t numeric_scale_of(const Datum& value) { return field<uint16_t>(value, 6); }

int signum(const Datum& value) {
  switch (numeric_sign_of(value)) {
    case kPlusInfinity:
      return 1;
    case kMinusInfinity:
      return -1;
    case kNan:
      return 2;
    case kNegative:
      return count_of(value) == 0 ? 0 : -1;
    default:
      return count_of(value) == 0 ? 0 : 1;
  }
}

bool take_apart(Scratch& scratch, const Datum& value, Parts& parts) {
  parts.count = count_of(value);
  parts.weight = weight_of(value);
  parts.scale = numeric_scale_of(value);
  parts.sign = numeric_sign_of(value);
  parts.digits = scratch.take_array<int32_t>(static_cast<size_t>(parts.count) + 1);
  if (parts.digits == nullptr) return false;
  *parts.digits++ = 0;
  for (int32_t i = 0; i < parts.count; ++i) parts.digits[i] = digit(value, i);
  return true;
}

Failure put_together(Scratch& scratch, Parts parts, Datum& out) {
  while (parts.count > 0 && parts.digits[0] == 0) {
    ++parts.digits;
    --parts.count;
    --parts.weight;
  }
  while (parts.count > 0 && parts.digits[parts.count - 1] == 0) --parts.count;
  if (parts.count == 0) {
    parts.weight = 0;
    parts.sign = kPositive;
  }
  if (parts.weight > kWeightMax || parts.weight < -kWeightMax - 1 || parts.scale > kScaleMax) {
    return Failure::out_of_range;
  }
  const size_t size = kHead + 2 * static_cast<size_t>(parts.count);
  char* const bytes = scratch.take(size);
  if (bytes == nullptr) return Failure::too_large;
  lcr::ByteWriter writer(std::as_writable_bytes(std::span(bytes, size)));
  writer.integer(static_cast<uint16_t>(parts.count));
  writer.integer(static_cast<int16_t>(parts.weight));
  writer.integer(parts.sign);
  writer.integer(static_cast<uint16_t>(parts.scale));
  for (int32_t i = 0; i < parts.count; ++i) writer.integer(static_cast<uint16_t>(parts.digits[i]));
  return give_text(out, {bytes, size});
}

Failure put_special(Scratch& scratch, Sign sign, Datum& out) {
  return put_together(scratch, {.digits = nullptr, .count = 0, .weight = 0, .scale = 0, .sign = kPositive}, out) ==
                 Failure::none
             ? (const_cast<char*>(out.data)[4] = static_cast<char>(sign >> 8), Failure::none)
             : Failure::too_large;
}

void round_parts(Parts& parts, int64_t scale, bool half_away) {
  constexpr std::array<int32_t, 4> kPowers{10'000, 1'000, 100, 10};
  parts.scale = static_cast<int32_t>(std::max<int64_t>(scale, 0));
  const int64_t kept = (static_cast<int64_t>(parts.weight) + 1) * kBaseDigits + scale;  // decimal digits
  if (kept >= static_cast<int64_t>(parts.count) * kBaseDigits) return;
  if (kept < 0) {
    parts.count = 0;
    return;
  }
  auto word = static_cast<int32_t>(kept / kBaseDigits);
  const auto rest = static_cast<size_t>(kept % kBaseDigits);
  bool carry = false;
  if (rest == 0) {
    carry = parts.digits[word] >= kBase / 2;
    parts.count = word;
  } else {
    const int32_t power = kPowers[rest];
    const int32_t cut = parts.digits[word] % power;
    parts.digits[word] -= cut;
    if (half_away && cut >= power / 2) parts.digits[word] += power;
    carry = parts.digits[word] >= kBase;
    if (carry) parts.digits[word] -= kBase;
    parts.count = word + 1;
  }
  if (!half_away || !carry) return;
  while (carry && --word >= 0) {
    carry = ++parts.digits[word] == kBase;
    if (carry) parts.digits[word] = 0;
  }
  if (carry) {
    --parts.digits;
    parts.digits[0] = 1;
    ++parts.count;
    ++parts.weight;
  }
}

int compare_numeric(const Datum& a, const Datum& b) {
  const Sign sign_a = numeric_sign_of(a);
  const Sign sign_b = numeric_sign_of(b);
  if (rank(sign_a) != 1 || rank(sign_b) != 1) return (rank(sign_a) > rank(sign_b)) - (rank(sign_a) < rank(sign_b));
  if (sign_a != sign_b) {
    if (count_of(a) == 0 && count_of(b) == 0) return 0;
    return sign_a == kNegative ? -1 : 1;
  }
  const int order = compare_magnitudes(a, b);
  return sign_a == kNegative ? -order : order;
}

Failure numeric_add(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  if (special(a) || special(b)) return add_special(scratch, numeric_sign_of(a), numeric_sign_of(b), out);
  return add_signed(scratch, a, b, false, out);
}

Failure numeric_subtract(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  if (special(a) || special(b)) return add_special(scratch, numeric_sign_of(a), opposite(numeric_sign_of(b)), out);
  return add_signed(scratch, a, b, true, out);
}

Failure numeric_multiply(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  if (special(a) || special(b)) {
    const int product = signum(a) * signum(b);
    if (signum(a) == 2 || signum(b) == 2 || product == 0) return put_special(scratch, kNan, out);
    return put_special(scratch, product > 0 ? kPlusInfinity : kMinusInfinity, out);
  }
  Parts left, right;
  if (!take_apart(scratch, a, left) || !take_apart(scratch, b, right)) return Failure::too_large;
  if (!scratch.spend(digit_steps(left.count, right.count))) return Failure::too_costly;
  const int32_t count = left.count + right.count;
  Parts product{.digits = scratch.take_array<int32_t>(static_cast<size_t>(count) + 1),
                .count = count,
                .weight = left.weight + right.weight + 1,
                .scale = left.scale + right.scale,
                .sign = left.sign == right.sign ? kPositive : kNegative};
  if (product.digits == nullptr) return Failure::too_large;
  std::fill_n(product.digits, count + 1, 0);
  ++product.digits;
  for (int32_t i = left.count - 1; i >= 0; --i) {
    int32_t carry = 0;
    for (int32_t j = right.count - 1; j >= 0; --j) {
      const int32_t value = product.digits[i + j + 1] + left.digits[i] * right.digits[j] + carry;
      product.digits[i + j + 1] = value % kBase;
      carry = value / kBase;
    }
    product.digits[i] += carry;
  }
  if (product.scale > kScaleMax) round_parts(product, kScaleMax, true);
  return put_together(scratch, product, out);
}

namespace {

Failure divide(Scratch& scratch, const Datum& a, const Datum& b, bool whole, Datum& out) {
  if (signum(a) == 2 || signum(b) == 2) return put_special(scratch, kNan, out);
  if (special(a)) {
    if (special(b)) return put_special(scratch, kNan, out);
    if (signum(b) == 0) return Failure::division_by_zero;
    return put_special(scratch, signum(a) == signum(b) ? kPlusInfinity : kMinusInfinity, out);
  }
  if (special(b)) return put_together(scratch, {}, out);
  if (signum(b) == 0) return Failure::division_by_zero;
  Parts left, right, result;
  if (!take_apart(scratch, a, left) || !take_apart(scratch, b, right)) return Failure::too_large;
  const int32_t scale = whole ? 0 : quotient_scale(left, right);
  const Failure failure = quotient(scratch, left, right, scale, !whole, result);
  return failure != Failure::none ? failure : put_together(scratch, result, out);
}

}  // namespace

Failure numeric_divide(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  return divide(scratch, a, b, false, out);
}

Failure numeric_whole_quotient(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  return divide(scratch, a, b, true, out);
}

Failure numeric_remainder(Scratch& scratch, const Datum& a, const Datum& b, Datum& out) {
  if (signum(a) == 2 || signum(b) == 2) return put_special(scratch, kNan, out);
  if (special(a)) return signum(b) == 0 ? Failure::division_by_zero : put_special(scratch, kNan, out);
  if (special(b)) return give_text(out, a.text());
  if (signum(b) == 0) return Failure::division_by_zero;
  Parts left, right, result;
  if (!take_apart(scratch, a, left) || !take_apart(scratch, b, right)) return Failure::too_large;
  if (const Failure failure = quotient(scratch, left, right, 0, false, result); failure != Failure::none)
    return failure;
  Datum whole, product;
  if (const Failure failure = put_together(scratch, result, whole); failure != Failure::none) return failure;
  if (const Failure failure = numeric_multiply(scratch, whole, b, product); failure != Failure::none) return failure;
  return numeric_subtract(scratch, a, product, out);
}

Failure numeric_negate(Scratch& scratch, const Datum& a, Datum& out) {
  if (special(a)) return put_special(scratch, opposite(numeric_sign_of(a)), out);
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  parts.sign = opposite(static_cast<Sign>(parts.sign));
  return put_together(scratch, parts, out);
}

Failure numeric_absolute(Scratch& scratch, const Datum& a, Datum& out) {
  return signum(a) == -1 ? numeric_negate(scratch, a, out) : give_text(out, a.text());
}

Failure numeric_sign(Scratch& scratch, const Datum& a, Datum& out) {
  const int sign = signum(a);
  return sign == 2 ? put_special(scratch, kNan, out) : numeric_from_integer(scratch, sign, out);
}

Failure numeric_round(Scratch& scratch, const Datum& a, int64_t scale, Rounding rounding, Datum& out) {
  if (special(a)) return give_text(out, a.text());
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  const bool directed = rounding == Rounding::down || rounding == Rounding::up;
  constexpr int64_t kWholeDigitsMax = (int64_t{kWeightMax} + 1) * kBaseDigits + 1;
  round_parts(parts, std::clamp<int64_t>(scale, -kWholeDigitsMax, kScaleMax), rounding == Rounding::half_away);
  Datum cut;
  if (const Failure failure = put_together(scratch, parts, cut); failure != Failure::none) return failure;
  const int order = directed ? compare_numeric(a, cut) : 0;
  Datum step;
  if ((rounding == Rounding::down && order < 0) || (rounding == Rounding::up && order > 0)) {
    if (const Failure failure = numeric_from_integer(scratch, order, step); failure != Failure::none) return failure;
    return numeric_add(scratch, cut, step, out);
  }
  return give_text(out, cut.text());
}

Failure numeric_fit(Scratch& scratch, const Datum& a, int32_t precision, int32_t scale, Datum& out) {
  if (special(a)) return numeric_sign_of(a) == kNan ? give_text(out, a.text()) : Failure::out_of_range;
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  round_parts(parts, scale, true);
  if (const Failure failure = put_together(scratch, parts, out); failure != Failure::none) return failure;
  if (count_of(out) == 0) return Failure::none;
  int32_t whole_digits = (weight_of(out) + 1) * kBaseDigits;
  for (int32_t power = kBase / 10; power > 0 && digit(out, 0) < power; power /= 10) --whole_digits;
  return whole_digits > precision - scale ? Failure::out_of_range : Failure::none;
}

}  // namespace thalweg::rules
