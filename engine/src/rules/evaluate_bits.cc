#include <array>
#include <limits>
#include <numeric>

#include "rules/evaluators.h"

// Bits of integers, their common divisors and multiples, and their hexadecimal digits.

namespace thalweg::rules {

namespace {

template <auto Operation>
Failure binary(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = Operation(a.integer, b.integer);
  return Failure::none;
}
// Sign extension keeps these right for every size.
int64_t both(int64_t a, int64_t b) { return a & b; }
int64_t either(int64_t a, int64_t b) { return a | b; }
int64_t one(int64_t a, int64_t b) { return a ^ b; }
Failure none_of(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = ~a.integer;
  return Failure::none;
}

// The server's processor takes the count of bits modulo the size of what it shifts; an int2 is shifted as an int4.
template <typename Integer>
int64_t shift_count(const Datum& count) {
  constexpr int64_t kBits = std::is_same_v<Integer, int64_t> ? 64 : 32;
  return count.integer & (kBits - 1);
}
template <typename Integer>
Failure shift_left(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = static_cast<Integer>(static_cast<uint64_t>(a.integer) << shift_count<Integer>(b));
  return Failure::none;
}
template <typename Integer>
Failure shift_right(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = a.integer >> shift_count<Integer>(b);
  return Failure::none;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

template <typename Integer>
Failure fit(Wide value, Datum& out) {
  if (value > std::numeric_limits<Integer>::max()) return Failure::out_of_range;
  out.integer = static_cast<int64_t>(value);
  return Failure::none;
}
template <typename Integer>
Failure common_divisor(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return fit<Integer>(std::gcd(magnitude(a.integer), magnitude(b.integer)), out);
}
template <typename Integer>
Failure common_multiple(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const uint64_t left = magnitude(a.integer);
  const uint64_t right = magnitude(b.integer);
  if (left == 0 || right == 0) return fit<Integer>(0, out);
  return fit<Integer>(Wide{left / std::gcd(left, right)} * right, out);
}

// Of the two's complement.
template <typename Unsigned>
Failure hexadecimal(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  constexpr size_t kDigits = 2 * sizeof(Unsigned);
  char* const text = scratch.take(kDigits);
  if (text == nullptr) return Failure::too_large;
  size_t at = kDigits;
  auto rest = static_cast<Unsigned>(a.integer);
  do {
    text[--at] = "0123456789abcdef"[rest % 16];
    rest /= 16;
  } while (rest != 0);
  return give_text(out, {text + at, kDigits - at});
}

#define BITS(prefix, integer)                                                                                          \
  Evaluator{prefix "and", binary<both>}, Evaluator{prefix "or", binary<either>}, Evaluator{prefix "xor", binary<one>}, \
      Evaluator{prefix "not", none_of}, Evaluator{prefix "shl", shift_left<integer>}, Evaluator {                      \
    prefix "shr", shift_right<integer>                                                                                 \
  }

constexpr std::array kEvaluators{BITS("int2", int16_t),
                                 BITS("int4", int32_t),
                                 BITS("int8", int64_t),
                                 Evaluator{"int4gcd", common_divisor<int32_t>},
                                 Evaluator{"int8gcd", common_divisor<int64_t>},
                                 Evaluator{"int4lcm", common_multiple<int32_t>},
                                 Evaluator{"int8lcm", common_multiple<int64_t>},
                                 Evaluator{"to_hex32", hexadecimal<uint32_t>},
                                 Evaluator{"to_hex64", hexadecimal<uint64_t>}};

}  // namespace

std::span<const Evaluator> bit_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
