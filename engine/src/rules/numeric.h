#pragma once

#include <cstdint>
#include <string_view>

#include "rules/value.h"

// PostgreSQL's numeric. A value lies in its binary send form, which is canonical: u16 digits, i16 weight, u16 sign,
// u16 scale, then digits of base 10000 (all big-endian), the first and the last of them not zero.

namespace thalweg::rules {

// Whether the bytes are such a value.
bool is_numeric(std::string_view bytes);

int compare_numeric(const Datum& a, const Datum& b);  // NaN equals NaN and is above all else

Failure numeric_add(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
Failure numeric_subtract(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
Failure numeric_multiply(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
Failure numeric_divide(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
// Cut to a whole number.
Failure numeric_whole_quotient(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
Failure numeric_remainder(Scratch& scratch, const Datum& a, const Datum& b, Datum& out);
Failure numeric_negate(Scratch& scratch, const Datum& a, Datum& out);
Failure numeric_absolute(Scratch& scratch, const Datum& a, Datum& out);
Failure numeric_sign(Scratch& scratch, const Datum& a, Datum& out);

enum class Rounding : uint8_t { half_away, toward_zero, down, up };
Failure numeric_round(Scratch& scratch, const Datum& a, int64_t scale, Rounding rounding, Datum& out);
// numeric(precision, scale)
Failure numeric_fit(Scratch& scratch, const Datum& a, int32_t precision, int32_t scale, Datum& out);

Failure numeric_from_integer(Scratch& scratch, int64_t value, Datum& out);
Failure numeric_from_real(Scratch& scratch, double value, int digits, Datum& out);  // 15 for float8, 6 for float4
Failure numeric_from_text(Scratch& scratch, std::string_view text, Datum& out);
Failure numeric_to_text(Scratch& scratch, const Datum& a, Datum& out);
Failure numeric_to_integer(Scratch& scratch, const Datum& a, int64_t low, int64_t high, Datum& out);

}  // namespace thalweg::rules
