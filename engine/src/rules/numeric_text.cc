#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lcr/bytes.h"
#include "rules/numeric.h"
#include "rules/numeric_parts.h"
#include "rules/text_input.h"

// Numerics from and to integers, floats and text.

namespace thalweg::rules {

Failure numeric_from_integer(Scratch& scratch, int64_t value, Datum& out) {
  int32_t digits[6];
  auto rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (int32_t i = 5; i > 0; --i, rest /= kBase) digits[i] = static_cast<int32_t>(rest % kBase);
  digits[0] = 0;
  return put_together(
      scratch, {.digits = digits, .count = 6, .weight = 5, .scale = 0, .sign = value < 0 ? kNegative : kPositive}, out);
}

Failure numeric_from_real(Scratch& scratch, double value, int digits, Datum& out) {
  if (std::isnan(value)) return put_special(scratch, kNan, out);
  if (std::isinf(value)) return put_special(scratch, value > 0 ? kPlusInfinity : kMinusInfinity, out);
  char text[64];
  const int length = std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return numeric_from_text(scratch, {text, static_cast<size_t>(length)}, out);
}

Failure numeric_from_text(Scratch& scratch, std::string_view text, Datum& out) {
  text = trimmed(text);
  if (equals_word(text, "nan")) return put_special(scratch, kNan, out);
  const bool signed_text = !text.empty() && (text[0] == '-' || text[0] == '+');
  const bool negative = signed_text && text[0] == '-';
  if (signed_text) text.remove_prefix(1);
  if (equals_word(text, "infinity") || equals_word(text, "inf")) {
    return put_special(scratch, negative ? kMinusInfinity : kPlusInfinity, out);
  }
  // Decimal digits, and where their point is.
  size_t digits = 0;
  int64_t before_point = 0;
  bool point = false;
  size_t at = 0;
  char* const decimals = scratch.take(text.size());
  if (decimals == nullptr) return Failure::too_large;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (text[at] >= '0' && text[at] <= '9') {
      decimals[digits++] = static_cast<char>(text[at] - '0');
      if (!point) ++before_point;
    } else {
      break;
    }
  }
  if (digits == 0) return Failure::invalid_text;
  int64_t scale = static_cast<int64_t>(digits) - before_point;
  if (at < text.size()) {
    if (text[at] != 'e' && text[at] != 'E') return Failure::invalid_text;
    std::string_view exponent_text = text.substr(at + 1);
    while (!exponent_text.empty() && is_space(exponent_text[0])) exponent_text.remove_prefix(1);  // strtol does so
    const bool with_sign = !exponent_text.empty() && (exponent_text[0] == '-' || exponent_text[0] == '+');
    int64_t exponent = 0;
    const std::string_view exponent_digits = exponent_text.substr(with_sign ? 1 : 0);
    if (exponent_digits.empty()) return Failure::invalid_text;
    for (const char c : exponent_digits) {
      if (c < '0' || c > '9') return Failure::invalid_text;
      exponent = std::min<int64_t>(exponent * 10 + (c - '0'), INT32_MAX);
    }
    if (exponent >= INT32_MAX / 2) return Failure::out_of_range;
    if (with_sign && exponent_text[0] == '-') exponent = -exponent;
    before_point += exponent;
    scale = std::max<int64_t>(scale - exponent, 0);
  }
  if (scale > kScaleMax) return Failure::out_of_range;
  // Group them by four around the point.
  const int64_t weight = (before_point > 0 ? before_point + kBaseDigits - 1 : before_point) / kBaseDigits - 1;
  const int64_t skipped = (weight + 1) * kBaseDigits - before_point;  // zeros ahead of the first
  const int64_t count = (skipped + static_cast<int64_t>(digits) + kBaseDigits - 1) / kBaseDigits;
  if (weight > INT32_MAX / 8 || weight < -INT32_MAX / 8) return Failure::out_of_range;
  auto* const words = scratch.take_array<int32_t>(static_cast<size_t>(count));
  if (words == nullptr) return Failure::too_large;
  for (int64_t word = 0; word < count; ++word) {
    int32_t value = 0;
    for (int64_t i = 0; i < kBaseDigits; ++i) {
      const int64_t index = word * kBaseDigits + i - skipped;
      value = value * 10 + (index >= 0 && index < static_cast<int64_t>(digits) ? decimals[index] : 0);
    }
    words[word] = value;
  }
  return put_together(scratch,
                      {.digits = words,
                       .count = static_cast<int32_t>(count),
                       .weight = static_cast<int32_t>(weight),
                       .scale = static_cast<int32_t>(scale),
                       .sign = negative ? kNegative : kPositive},
                      out);
}

Failure numeric_to_text(Scratch& scratch, const Datum& a, Datum& out) {
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  if (parts.sign == kNan) return give_text(out, "NaN");
  if (parts.special()) return give_text(out, parts.sign == kPlusInfinity ? "Infinity" : "-Infinity");
  const int32_t whole = std::max(parts.weight + 1, 1);
  const size_t size_max = static_cast<size_t>(whole + parts.scale / kBaseDigits + 2) * kBaseDigits + 2;
  char* const text = scratch.take(size_max);
  if (text == nullptr) return Failure::too_large;
  size_t size = 0;
  if (parts.sign == kNegative) text[size++] = '-';
  const auto digit_at = [&](int32_t weight) {
    const int32_t index = parts.weight - weight;
    return index < 0 || index >= parts.count ? 0 : parts.digits[index];
  };
  bool started = false;
  for (int32_t weight = whole - 1; weight >= 0; --weight) {
    for (int32_t power = kBase / 10; power > 0; power /= 10) {
      const int32_t decimal = digit_at(weight) / power % 10;
      started = started || decimal != 0 || (weight == 0 && power == 1);
      if (started) text[size++] = static_cast<char>('0' + decimal);
    }
  }
  if (parts.scale > 0) text[size++] = '.';
  int32_t left = parts.scale;
  for (int32_t weight = -1; left > 0; --weight) {
    for (int32_t power = kBase / 10; power > 0 && left > 0; power /= 10, --left) {
      text[size++] = static_cast<char>('0' + digit_at(weight) / power % 10);
    }
  }
  return give_text(out, {text, size});
}

Failure numeric_to_integer(Scratch& scratch, const Datum& a, int64_t low, int64_t high, Datum& out) {
  Parts parts;
  if (!take_apart(scratch, a, parts)) return Failure::too_large;
  if (parts.special()) return Failure::not_supported;
  round_parts(parts, 0, true);
  Wide value = 0;
  if (parts.count > 0 && parts.weight > 5) return Failure::out_of_range;
  for (int32_t i = 0; i < parts.count && i <= parts.weight; ++i) value = value * kBase + parts.digits[i];
  for (int32_t i = parts.count; i <= parts.weight && value != 0; ++i) value *= kBase;
  if (parts.sign == kNegative) value = -value;
  if (value < low || value > high) return Failure::out_of_range;
  out.integer = static_cast<int64_t>(value);
  return Failure::none;
}

}  // namespace thalweg::rules
