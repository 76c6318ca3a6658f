#pragma once

#include <string_view>

#include "rules/value.h"

// The types' input functions: values from text.

namespace thalweg::rules {

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
std::string_view trimmed(std::string_view text);  // without white space at its ends
bool equals_word(std::string_view text, std::string_view lower_case_word);

// The value of `text::type` for a literal of type unknown. Dates and times are read in ISO 8601's order only, and with
// their zone where they have one; any other form of them is Failure::unsupported_form.
Failure input(Scratch& scratch, Type type, std::string_view text, Datum& out);

// 2000-01-01 is day 0, in the Gregorian calendar.
int64_t days_from_civil(int64_t year, int64_t month, int64_t day);
struct Civil {
  int64_t year;
  int64_t month;
  int64_t day;
};
Civil civil_from_days(int64_t days);
int64_t days_in_month(int64_t year, int64_t month);

inline constexpr int64_t kMicrosPerSecond = 1'000'000;
inline constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
inline constexpr int64_t kTimestampInfinity = INT64_MAX;
inline constexpr int64_t kTimestampMinusInfinity = INT64_MIN;
inline constexpr int64_t kDateInfinity = INT32_MAX;
inline constexpr int64_t kDateMinusInfinity = INT32_MIN;
// First and past the last: 4714-11-24 BC, and 294277 (timestamps) or 5874898 (dates).
inline constexpr int64_t kDayMin = -2'451'545;
inline constexpr int64_t kTimestampDayEnd = 106'751'983;
inline constexpr int64_t kDateEnd = 2'145'031'949;
inline constexpr int64_t kTimestampMin = kDayMin * kMicrosPerDay;
inline constexpr int64_t kTimestampEnd = 9'223'371'331'200'000'000;

inline bool is_timestamp(int64_t micros) { return micros >= kTimestampMin && micros < kTimestampEnd; }

}  // namespace thalweg::rules
