#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rules/evaluators.h"
#include "rules/text_input.h"
#include "rules/time_fields.h"

// Dates and times made of numbers, their parts as floats, ages, bins, and intervals brought into shape.

namespace thalweg::rules {

namespace {

constexpr int64_t kDaysOfAMonth = 30;
constexpr int64_t kMonthsOfAYear = 12;
constexpr int64_t kSecondsPerDay = 86'400;
constexpr int64_t kUnixEpochDay = -10'957;
constexpr double kMicros = 1'000'000.0;

int64_t floor_divide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

bool infinite(int64_t timestamp) { return timestamp == kTimestampInfinity || timestamp == kTimestampMinusInfinity; }

// The day of a year that is negative before Christ; none is 0.
Failure day_of(const Datum* date, int64_t& day) {
  const int64_t year = date[0].integer < 0 ? date[0].integer + 1 : date[0].integer;
  const int64_t month = date[1].integer;
  const bool possible = date[0].integer != 0 && date[0].integer > INT32_MIN && month >= 1 && month <= kMonthsOfAYear &&
                        date[2].integer >= 1 && date[2].integer <= days_in_month(year, month);
  if (!possible) return Failure::datetime_overflow;
  day = days_from_civil(year, month, date[2].integer);
  return day < kDayMin || day >= kDateEnd ? Failure::datetime_overflow : Failure::none;
}
Failure clock_of(const Datum* time, int64_t& micros) {
  const int64_t hour = time[0].integer;
  const int64_t minute = time[1].integer;
  const double second = std::rint(time[2].real * kMicros);
  if (hour < 0 || hour > 24 || minute < 0 || minute >= 60) return Failure::datetime_overflow;
  if (!(second >= 0 && second <= 60 * kMicros)) return Failure::datetime_overflow;
  micros = (hour * 60 + minute) * 60 * kMicrosPerSecond + static_cast<int64_t>(second);
  return micros > kMicrosPerDay ? Failure::datetime_overflow : Failure::none;
}
Failure make_date(Scratch&, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  const Datum date[] = {a, b, c};
  return day_of(date, out.integer);
}
Failure make_time(Scratch&, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  const Datum time[] = {a, b, c};
  return clock_of(time, out.integer);
}
Failure make_timestamp(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const Datum* const all = arguments_from(a);
  int64_t day = 0;
  int64_t micros = 0;
  if (const Failure failure = day_of(all, day); failure != Failure::none) return failure;
  if (const Failure failure = clock_of(all + 3, micros); failure != Failure::none) return failure;
  const Wide made = Wide{day} * kMicrosPerDay + micros;
  if (made < kTimestampMin || made >= kTimestampEnd) return Failure::datetime_overflow;
  out.integer = static_cast<int64_t>(made);
  return Failure::none;
}

Failure finite_date(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = a.integer != kDateInfinity && a.integer != kDateMinusInfinity ? 1 : 0;
  return Failure::none;
}
Failure finite_timestamp(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = infinite(a.integer) ? 0 : 1;
  return Failure::none;
}
Failure finite_interval(Scratch&, const Datum&, const Datum&, const Datum&, Datum& out) {
  out.integer = 1;
  return Failure::none;
}

// Moves what `low` has of whole units of `high` there.
void carry(int64_t& high, int64_t& low, int64_t unit) {
  high += low / unit;
  low %= unit;
}
// Gives `low` the sign of `high`.
void align(int64_t& high, int64_t& low, int64_t unit) {
  const int64_t step = high > 0 && low < 0 ? 1 : high < 0 && low > 0 ? -1 : 0;
  low += step * unit;
  high -= step;
}
struct Span {
  int64_t months;
  int64_t days;
  int64_t micros;
};
Span span_of(const Datum& interval) {
  return {.months = interval.calendar.months, .days = interval.calendar.days, .micros = interval.integer};
}
Failure give(const Span& span, Datum& out) {
  const auto days = static_cast<int32_t>(span.days);
  const auto months = static_cast<int32_t>(span.months);
  if (days != span.days || months != span.months) return Failure::datetime_overflow;
  out.integer = span.micros;
  out.calendar = {.days = days, .months = months};
  return Failure::none;
}
// An overflow in between is one: the server looks at each sum.
bool fits(int64_t sum) { return sum == static_cast<int32_t>(sum); }

Failure justify_hours(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  Span span = span_of(a);
  carry(span.days, span.micros, kMicrosPerDay);
  if (!fits(span.days)) return Failure::datetime_overflow;
  align(span.days, span.micros, kMicrosPerDay);
  return give(span, out);
}
Failure justify_days(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  Span span = span_of(a);
  carry(span.months, span.days, kDaysOfAMonth);
  if (!fits(span.months)) return Failure::datetime_overflow;
  align(span.months, span.days, kDaysOfAMonth);
  return give(span, out);
}
Failure justify_interval(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  Span span = span_of(a);
  if ((span.days > 0 && span.micros > 0) || (span.days < 0 && span.micros < 0)) {
    carry(span.months, span.days, kDaysOfAMonth);
    if (!fits(span.months)) return Failure::datetime_overflow;
  }
  carry(span.days, span.micros, kMicrosPerDay);
  carry(span.months, span.days, kDaysOfAMonth);
  if (!fits(span.months)) return Failure::datetime_overflow;
  const int64_t below_months = span.days != 0 ? span.days : span.micros;
  const int64_t step = span.months > 0 && below_months < 0 ? 1 : span.months < 0 && below_months > 0 ? -1 : 0;
  span.days += step * kDaysOfAMonth;
  span.months -= step;
  align(span.days, span.micros, kMicrosPerDay);
  return give(span, out);
}

struct Moment {
  Civil date;
  int64_t micros;  // of its day
};
// Plus infinity is a moment here, as it is for the server; minus infinity is none.
Failure moment_of(int64_t timestamp, Moment& moment) {
  const int64_t day = floor_divide(timestamp, kMicrosPerDay);
  if (day < kDayMin) return Failure::datetime_overflow;
  moment = {.date = civil_from_days(day), .micros = timestamp - day * kMicrosPerDay};
  return Failure::none;
}
// The difference field by field: months are those that lie between the two dates.
Failure age(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  Moment later, earlier;
  if (const Failure failure = moment_of(a.integer, later); failure != Failure::none) return failure;
  if (const Failure failure = moment_of(b.integer, earlier); failure != Failure::none) return failure;
  const bool turned = a.integer < b.integer;
  if (turned) std::swap(later, earlier);
  int64_t micros = later.micros - earlier.micros;
  int64_t days = later.date.day - earlier.date.day;
  int64_t months = (later.date.year - earlier.date.year) * kMonthsOfAYear + later.date.month - earlier.date.month;
  if (micros < 0) {
    micros += kMicrosPerDay;
    --days;
  }
  while (days < 0) {  // borrows months that are as long as the earlier date's
    days += days_in_month(earlier.date.year, earlier.date.month);
    --months;
  }
  const int64_t sign = turned ? -1 : 1;
  return give({.months = sign * months, .days = sign * days, .micros = sign * micros}, out);
}

// The beginning of the bin that the moment lies in; the bins are counted from `origin`.
Failure bin(Scratch&, const Datum& stride, const Datum& moment, const Datum& origin, Datum& out) {
  out.integer = moment.integer;
  if (infinite(moment.integer)) return Failure::none;
  if (infinite(origin.integer)) return Failure::datetime_overflow;
  if (stride.calendar.months != 0) return Failure::not_supported;
  const Wide width = Wide{stride.calendar.days} * kMicrosPerDay + stride.integer;
  const Wide distance = Wide{moment.integer} - origin.integer;
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  if (width <= 0 || width > kMost || distance > kMost || distance < -kMost - 1) return Failure::datetime_overflow;
  Wide start = origin.integer + (distance - distance % width);
  if (distance % width < 0) {
    start -= width;
    if (start < kTimestampMin || start >= kTimestampEnd) return Failure::datetime_overflow;
  }
  out.integer = static_cast<int64_t>(start);
  return Failure::none;
}

// Toward zero. A week is no field of it.
Failure truncate_interval(Scratch&, const Datum& field, const Datum& interval, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  Span span = span_of(interval);
  if (*wanted >= Field::year) span.months -= span.months % kMonthsOfAYear;
  if (*wanted == Field::quarter) span.months -= span.months % 3;
  if (*wanted > Field::day) span.days = 0;
  if (*wanted > Field::hour) span.micros = 0;
  if (*wanted == Field::second) span.micros -= span.micros % kMicrosPerSecond;
  if (*wanted == Field::minute) span.micros -= span.micros % (60 * kMicrosPerSecond);
  if (*wanted == Field::hour) span.micros -= span.micros % (3600 * kMicrosPerSecond);
  return give(span, out);
}

double clock_part(Field field, int64_t micros) {
  switch (field) {
    case Field::second: {
      const int64_t of_minute = micros % (60 * kMicrosPerSecond);
      return static_cast<double>(of_minute / kMicrosPerSecond) +
             static_cast<double>(of_minute % kMicrosPerSecond) / kMicros;
    }
    case Field::minute:
      return static_cast<double>(micros / (60 * kMicrosPerSecond) % 60);
    default:
      return static_cast<double>(micros / (3600 * kMicrosPerSecond));
  }
}
Failure timestamp_part(Scratch&, const Datum& field, const Datum& timestamp, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  if (infinite(timestamp.integer)) {
    const double infinity = std::numeric_limits<double>::infinity();
    out.real = timestamp.integer < 0 ? -infinity : infinity;
    if (*wanted != Field::year && *wanted != Field::epoch) out.state = State::null;
    return Failure::none;
  }
  const int64_t day = floor_divide(timestamp.integer, kMicrosPerDay);
  if (*wanted <= Field::hour) {
    out.real = clock_part(*wanted, timestamp.integer - day * kMicrosPerDay);
  } else if (*wanted != Field::epoch) {
    out.real = static_cast<double>(field_of_day(*wanted, day));
  } else if (const Wide since = Wide{timestamp.integer} - Wide{kUnixEpochDay} * kMicrosPerDay;
             since < std::numeric_limits<int64_t>::max()) {
    out.real = static_cast<double>(static_cast<int64_t>(since)) / kMicros;
  } else {
    out.real = (static_cast<double>(timestamp.integer) - static_cast<double>(kUnixEpochDay * kMicrosPerDay)) / kMicros;
  }
  return Failure::none;
}
Failure date_part(Scratch& scratch, const Datum& field, const Datum& date, const Datum& c, Datum& out) {
  Datum timestamp;
  if (const Failure failure = midnight(date.integer, timestamp.integer); failure != Failure::none) return failure;
  return timestamp_part(scratch, field, timestamp, c, out);
}
Failure time_part(Scratch&, const Datum& field, const Datum& time, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  out.real = *wanted == Field::epoch ? static_cast<double>(time.integer) / kMicros : clock_part(*wanted, time.integer);
  return Failure::none;
}
Failure interval_part(Scratch&, const Datum& field, const Datum& interval, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  const Span span = span_of(interval);
  const int64_t years = span.months / kMonthsOfAYear;
  const int64_t months = span.months % kMonthsOfAYear;
  switch (*wanted) {
    case Field::day:
      out.real = static_cast<double>(span.days);
      break;
    case Field::month:
      out.real = static_cast<double>(months);
      break;
    case Field::quarter:
      out.real = static_cast<double>(months / 3 + 1);
      break;
    case Field::year:
      out.real = static_cast<double>(years);
      break;
    case Field::epoch: {  // in the server's order: every sum is rounded
      constexpr double kDay = kSecondsPerDay;
      out.real = static_cast<double>(span.micros) / kMicros;
      out.real += 365.25 * kDay * static_cast<double>(years);
      out.real += static_cast<double>(kDaysOfAMonth) * kDay * static_cast<double>(months);
      out.real += kDay * static_cast<double>(span.days);
      break;
    }
    default:
      out.real = clock_part(*wanted, span.micros);
  }
  return Failure::none;
}

constexpr std::array kEvaluators{Evaluator{"make_date", make_date},
                                 Evaluator{"make_time", make_time},
                                 Evaluator{"make_timestamp", make_timestamp},
                                 Evaluator{"date_finite", finite_date},
                                 Evaluator{"timestamp_finite", finite_timestamp},
                                 Evaluator{"interval_finite", finite_interval},
                                 Evaluator{"interval_justify_hours", justify_hours},
                                 Evaluator{"interval_justify_days", justify_days},
                                 Evaluator{"interval_justify_interval", justify_interval},
                                 Evaluator{"timestamp_age", age},
                                 Evaluator{"timestamp_bin", bin},
                                 Evaluator{"timestamptz_bin", bin},
                                 Evaluator{"interval_trunc", truncate_interval},
                                 Evaluator{"timestamp_part", timestamp_part},
                                 Evaluator{"date_part_1082_sql", date_part},
                                 Evaluator{"time_part", time_part},
                                 Evaluator{"interval_part", interval_part}};

}  // namespace

std::span<const Evaluator> calendar_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
