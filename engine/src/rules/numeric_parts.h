#pragma once

#include <cstdint>

#include "rules/value.h"

// A numeric taken apart: shared by numeric.cc and numeric_text.cc.

namespace thalweg::rules {

inline constexpr int32_t kBase = 10'000;
inline constexpr int kBaseDigits = 4;
inline constexpr int32_t kScaleMax = 16'383;
inline constexpr int32_t kWeightMax = 32'767;

enum Sign : uint16_t {
  kPositive = 0x0000,
  kNegative = 0x4000,
  kNan = 0xC000,
  kPlusInfinity = 0xD000,
  kMinusInfinity = 0xF000,
};

// digits[0] counts kBase^weight.
struct Parts {
  int32_t* digits = nullptr;
  int32_t count = 0;
  int32_t weight = 0;
  int32_t scale = 0;
  uint16_t sign = kPositive;

  bool special() const { return (sign & 0xC000) == 0xC000; }
};

Sign numeric_sign_of(const Datum& value);
int32_t numeric_scale_of(const Datum& value);
// -1, 0, 1; NaN: 2.
int signum(const Datum& value);

// The digits with one zero before the first, for a carry. False: scratch is used up.
bool take_apart(Scratch& scratch, const Datum& value, Parts& parts);
// Puts a result together, without zeros at its ends.
Failure put_together(Scratch& scratch, Parts parts, Datum& out);
Failure put_special(Scratch& scratch, Sign sign, Datum& out);
// Cuts to `scale` decimals; digits[-1] must be there and zero. The scale of the result is `scale`, 0 at least.
void round_parts(Parts& parts, int64_t scale, bool half_away);

}  // namespace thalweg::rules
