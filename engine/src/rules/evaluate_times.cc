#include <algorithm>
#include <array>

#include "rules/evaluators.h"
#include "rules/text_input.h"
#include "rules/time_fields.h"

// date, time, timestamp, timestamptz and interval.

namespace thalweg::rules {

namespace {

bool infinite_date(int64_t days) { return days == kDateInfinity || days == kDateMinusInfinity; }
bool infinite_timestamp(int64_t micros) { return micros == kTimestampInfinity || micros == kTimestampMinusInfinity; }

Wide span_of(const Datum& interval) {
  return Wide{interval.integer} + (Wide{interval.calendar.months} * 30 + interval.calendar.days) * Wide{kMicrosPerDay};
}
int interval_order(const Datum& a, const Datum& b) { return three_way(span_of(a), span_of(b)); }

// A date is midnight; one past the last timestamp is above every finite one.
int date_to_timestamp_order(const Datum& date, const Datum& timestamp) {
  if (date.integer == kDateInfinity) return three_way(kTimestampInfinity, timestamp.integer);
  if (date.integer == kDateMinusInfinity) return three_way(kTimestampMinusInfinity, timestamp.integer);
  if (date.integer >= kTimestampDayEnd) return timestamp.integer == kTimestampInfinity ? -1 : 1;
  return three_way(date.integer * kMicrosPerDay, timestamp.integer);
}
int timestamp_to_date_order(const Datum& timestamp, const Datum& date) {
  return -date_to_timestamp_order(date, timestamp);
}

Failure date_shift(int64_t date, int64_t days, Datum& out) {
  out.integer = infinite_date(date) ? date : date + days;
  if (!infinite_date(date) && (out.integer < kDayMin || out.integer >= kDateEnd)) return Failure::datetime_overflow;
  return Failure::none;
}
Failure date_plus(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return date_shift(a.integer, b.integer, out);
}
Failure date_minus(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return date_shift(a.integer, -b.integer, out);
}
Failure date_difference(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (infinite_date(a.integer) || infinite_date(b.integer)) return Failure::datetime_overflow;
  out.integer = a.integer - b.integer;
  return Failure::none;
}
Failure date_to_timestamp(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return midnight(a.integer, out.integer);
}
Failure date_and_time(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const Failure failure = midnight(a.integer, out.integer);
  if (failure != Failure::none || infinite_timestamp(out.integer)) return failure;
  out.integer += b.integer;
  return is_timestamp(out.integer) ? Failure::none : Failure::datetime_overflow;
}

// Months first (to the last day of a shorter month), then days, then time: each result has to be a timestamp.
Failure shift(int64_t timestamp, int64_t months, int64_t days, Wide micros, Datum& out) {
  out.integer = timestamp;
  if (infinite_timestamp(timestamp)) return Failure::none;
  int64_t day = timestamp / kMicrosPerDay - (timestamp % kMicrosPerDay < 0 ? 1 : 0);
  const int64_t clock = timestamp - day * kMicrosPerDay;
  if (months != 0) {
    Civil civil = civil_from_days(day);
    const int64_t month = civil.year * 12 + civil.month - 1 + months;
    civil.year = month / 12 - (month % 12 < 0 ? 1 : 0);
    civil.month = month - civil.year * 12 + 1;
    day = days_from_civil(civil.year, civil.month, std::min(civil.day, days_in_month(civil.year, civil.month)));
    if (day < kDayMin || day >= kTimestampDayEnd) return Failure::datetime_overflow;
  }
  if (days != 0) {
    day += days;
    if (day < kDayMin || day >= kTimestampDayEnd) return Failure::datetime_overflow;
  }
  const Wide shifted = Wide{day} * kMicrosPerDay + clock + micros;
  if (shifted < kTimestampMin || shifted >= kTimestampEnd) return Failure::datetime_overflow;
  out.integer = static_cast<int64_t>(shifted);
  return Failure::none;
}
template <int Sign>
Failure timestamp_shift(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return shift(a.integer, Sign * int64_t{b.calendar.months}, Sign * int64_t{b.calendar.days}, Sign * Wide{b.integer},
               out);
}
template <int Sign>
Failure date_shift_by_interval(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  Datum start;
  const Failure failure = midnight(a.integer, start.integer);
  return failure != Failure::none ? failure : timestamp_shift<Sign>(scratch, start, b, c, out);
}
Failure timestamp_difference(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (infinite_timestamp(a.integer) || infinite_timestamp(b.integer)) return Failure::datetime_overflow;
  // PostgreSQL 15 does not look for an overflow here: it goes round.
  const auto micros = static_cast<int64_t>(static_cast<uint64_t>(a.integer) - static_cast<uint64_t>(b.integer));
  out.integer = micros % kMicrosPerDay;
  out.calendar = {.days = static_cast<int32_t>(micros / kMicrosPerDay), .months = 0};
  return Failure::none;
}
Failure timestamp_to_date(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (infinite_timestamp(a.integer)) {
    out.integer = a.integer > 0 ? kDateInfinity : kDateMinusInfinity;
  } else {
    out.integer = a.integer / kMicrosPerDay - (a.integer % kMicrosPerDay < 0 ? 1 : 0);
  }
  return Failure::none;
}
int64_t clock_of(int64_t micros) {
  const int64_t clock = micros % kMicrosPerDay;
  return clock < 0 ? clock + kMicrosPerDay : clock;
}
Failure timestamp_to_time(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  if (infinite_timestamp(a.integer)) out.state = State::null;
  out.integer = clock_of(a.integer);
  return Failure::none;
}

template <int Sign>
Failure time_shift(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = clock_of(a.integer + Sign * (b.integer % kMicrosPerDay));
  return Failure::none;
}
Failure time_difference(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  out.integer = a.integer - b.integer;
  out.calendar = {.days = 0, .months = 0};
  return Failure::none;
}
Failure time_to_interval(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = a.integer;
  out.calendar = {.days = 0, .months = 0};
  return Failure::none;
}

Failure make_interval(Wide micros, int64_t days, int64_t months, Datum& out) {
  if (micros > INT64_MAX || micros < INT64_MIN || days != static_cast<int32_t>(days) ||
      months != static_cast<int32_t>(months)) {
    return Failure::datetime_overflow;
  }
  out.integer = static_cast<int64_t>(micros);
  out.calendar = {.days = static_cast<int32_t>(days), .months = static_cast<int32_t>(months)};
  return Failure::none;
}
template <int Sign>
Failure interval_sum(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return make_interval(Wide{a.integer} + Sign * Wide{b.integer}, a.calendar.days + Sign * int64_t{b.calendar.days},
                       a.calendar.months + Sign * int64_t{b.calendar.months}, out);
}
Failure interval_negate(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  return make_interval(-Wide{a.integer}, -int64_t{a.calendar.days}, -int64_t{a.calendar.months}, out);
}

#define COMPARISONS(before, after, order)                                                                          \
  Evaluator{before "eq" after, compare<order, Equal>}, Evaluator{before "ne" after, compare<order, NotEqual>},     \
      Evaluator{before "lt" after, compare<order, Less>}, Evaluator{before "le" after, compare<order, LessEqual>}, \
      Evaluator{before "gt" after, compare<order, Greater>}, Evaluator {                                           \
    before "ge" after, compare<order, GreaterEqual>                                                                \
  }

constexpr std::array kEvaluators{
    COMPARISONS("date_", "", integer_order), COMPARISONS("time_", "", integer_order),
    COMPARISONS("timestamp_", "", integer_order), COMPARISONS("interval_", "", interval_order),
    COMPARISONS("date_", "_timestamp", date_to_timestamp_order),
    COMPARISONS("timestamp_", "_date", timestamp_to_date_order), Evaluator{"date_pli", date_plus},
    Evaluator{"date_mii", date_minus}, Evaluator{"date_mi", date_difference},
    Evaluator{"date_pl_interval", date_shift_by_interval<1>}, Evaluator{"date_mi_interval", date_shift_by_interval<-1>},
    Evaluator{"datetime_timestamp", date_and_time}, Evaluator{"timestamp_pl_interval", timestamp_shift<1>},
    Evaluator{"timestamp_mi_interval", timestamp_shift<-1>}, Evaluator{"timestamp_mi", timestamp_difference},
    Evaluator{"time_pl_interval", time_shift<1>}, Evaluator{"time_mi_interval", time_shift<-1>},
    Evaluator{"time_mi_time", time_difference}, Evaluator{"interval_pl", interval_sum<1>},
    Evaluator{"interval_mi", interval_sum<-1>}, Evaluator{"interval_um", interval_negate},
    Evaluator{"extract_date", extract_date}, Evaluator{"extract_time", extract_time},
    Evaluator{"extract_interval", extract_interval}, Evaluator{"extract_timestamp", extract_timestamp},
    Evaluator{"timestamp_trunc", truncate_timestamp},
    // Casts
    Evaluator{"date_timestamp", date_to_timestamp}, Evaluator{"timestamp_date", timestamp_to_date},
    Evaluator{"timestamp_time", timestamp_to_time}, Evaluator{"time_interval", time_to_interval}};

}  // namespace

std::span<const Evaluator> time_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
