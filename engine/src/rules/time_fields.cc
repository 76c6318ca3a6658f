#include "rules/time_fields.h"

#include <array>
#include <cstdio>
#include <utility>

#include "rules/numeric.h"
#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

struct NamedField {
  std::string_view name;
  Field field;
};

constexpr std::array kFields{
    NamedField{"second", Field::second},   NamedField{"minute", Field::minute}, NamedField{"hour", Field::hour},
    NamedField{"day", Field::day},         NamedField{"week", Field::week},     NamedField{"month", Field::month},
    NamedField{"quarter", Field::quarter}, NamedField{"year", Field::year},     NamedField{"dow", Field::dow},
    NamedField{"isodow", Field::isodow},   NamedField{"doy", Field::doy},       NamedField{"epoch", Field::epoch}};

int64_t floor_divide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

// PostgreSQL has no year 0.
int64_t shown_year(int64_t year) { return year > 0 ? year : year - 1; }

int64_t weekday(int64_t days) { return ((days + 6) % 7 + 7) % 7; }  // 0 is Sunday; 2000-01-01 was a Saturday

// Microseconds as seconds with six decimals.
Failure seconds_of(Scratch& scratch, Wide micros, Datum& out) {
  const bool negative = micros < 0;
  if (negative) micros = -micros;
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "%s%lld.%06lld", negative ? "-" : "",
                                 static_cast<long long>(micros / kMicrosPerSecond),
                                 static_cast<long long>(micros % kMicrosPerSecond));
  return numeric_from_text(scratch, {text, static_cast<size_t>(size)}, out);
}

// A field of the time of a day or of an interval, whose hours have no bound.
Failure extract_clock(Scratch& scratch, Field field, int64_t micros, Datum& out) {
  switch (field) {
    case Field::second:
      return seconds_of(scratch, micros % (60 * kMicrosPerSecond), out);
    case Field::minute:
      return numeric_from_integer(scratch, micros / (60 * kMicrosPerSecond) % 60, out);
    default:
      return numeric_from_integer(scratch, micros / (3600 * kMicrosPerSecond), out);
  }
}

// A field of an infinite date: years and epochs are infinite, fields that go round are NULL.
Failure infinite(Scratch& scratch, Field field, bool minus, Datum& out) {
  if (field == Field::year || field == Field::epoch) {
    return numeric_from_text(scratch, minus ? "-infinity" : "infinity", out);
  }
  out.state = State::null;
  return Failure::none;
}

}  // namespace

int64_t field_of_day(Field field, int64_t days) {
  const Civil civil = civil_from_days(days);
  switch (field) {
    case Field::year:
      return shown_year(civil.year);
    case Field::quarter:
      return (civil.month - 1) / 3 + 1;
    case Field::month:
      return civil.month;
    case Field::day:
      return civil.day;
    case Field::dow:
      return weekday(days);
    case Field::isodow:
      return weekday(days) == 0 ? 7 : weekday(days);
    case Field::week: {  // of the year that has the week's Thursday
      const int64_t thursday = days - (weekday(days) + 6) % 7 + 3;
      return (thursday - days_from_civil(civil_from_days(thursday).year, 1, 1)) / 7 + 1;
    }
    default:
      return days - days_from_civil(civil.year, 1, 1) + 1;  // doy
  }
}

Failure midnight(int64_t date, int64_t& timestamp) {
  if (date == kDateInfinity || date == kDateMinusInfinity) {
    timestamp = date == kDateInfinity ? kTimestampInfinity : kTimestampMinusInfinity;
    return Failure::none;
  }
  if (date >= kTimestampDayEnd) return Failure::datetime_overflow;
  timestamp = date * kMicrosPerDay;
  return Failure::none;
}

std::optional<Field> find_field(std::string_view name) {
  for (const NamedField& named : kFields) {
    if (equals_word(name, named.name)) return named.field;
  }
  return std::nullopt;
}

bool has_field(std::string_view function, std::string_view name) {
  const auto field = find_field(name);
  if (!field) return false;
  if (function == "timestamp_trunc") return *field <= Field::year;
  if (function == "interval_trunc") return *field <= Field::year && *field != Field::week;
  if (function == "extract_date") return *field > Field::hour;
  if (function == "extract_time" || function == "time_part") return *field <= Field::hour || *field == Field::epoch;
  if (function == "extract_interval" || function == "interval_part")
    return *field != Field::week && (*field <= Field::year || *field == Field::epoch);
  return true;
}

Failure extract_date(Scratch& scratch, const Datum& field, const Datum& date, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  if (date.integer == kDateInfinity || date.integer == kDateMinusInfinity) {
    return infinite(scratch, *wanted, date.integer < 0, out);
  }
  if (*wanted == Field::epoch) return numeric_from_integer(scratch, (date.integer + 10'957) * 86'400, out);
  return numeric_from_integer(scratch, field_of_day(*wanted, date.integer), out);
}

Failure extract_timestamp(Scratch& scratch, const Datum& field, const Datum& timestamp, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  if (timestamp.integer == kTimestampInfinity || timestamp.integer == kTimestampMinusInfinity) {
    return infinite(scratch, *wanted, timestamp.integer < 0, out);
  }
  const int64_t days = floor_divide(timestamp.integer, kMicrosPerDay);
  const int64_t micros = timestamp.integer - days * kMicrosPerDay;
  switch (*wanted) {
    case Field::second:
    case Field::minute:
    case Field::hour:
      return extract_clock(scratch, *wanted, micros, out);
    case Field::epoch:
      return seconds_of(scratch, Wide{timestamp.integer} + Wide{10'957} * kMicrosPerDay, out);
    default:
      return numeric_from_integer(scratch, field_of_day(*wanted, days), out);
  }
}

Failure extract_time(Scratch& scratch, const Datum& field, const Datum& time, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  if (*wanted == Field::epoch) return seconds_of(scratch, time.integer, out);
  return extract_clock(scratch, *wanted, time.integer, out);
}

Failure extract_interval(Scratch& scratch, const Datum& field, const Datum& interval, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  const int64_t years = interval.calendar.months / 12;
  const int64_t months = interval.calendar.months % 12;
  switch (*wanted) {
    case Field::day:
      return numeric_from_integer(scratch, interval.calendar.days, out);
    case Field::month:
      return numeric_from_integer(scratch, months, out);
    case Field::quarter:
      return numeric_from_integer(scratch, months / 3 + 1, out);
    case Field::year:
      return numeric_from_integer(scratch, years, out);
    case Field::epoch: {  // a year has 365.25 days here, a month 30
      constexpr int64_t kSixHours = 21'600;
      const int64_t quarters_of_days = years * 1461 + months * 120 + int64_t{interval.calendar.days} * 4;
      return seconds_of(scratch, Wide{quarters_of_days} * kSixHours * kMicrosPerSecond + interval.integer, out);
    }
    default:
      return extract_clock(scratch, *wanted, interval.integer, out);
  }
}

Failure truncate_timestamp(Scratch&, const Datum& field, const Datum& timestamp, const Datum&, Datum& out) {
  const auto wanted = find_field(field.text());
  if (!wanted) return Failure::invalid_parameter;
  out.integer = timestamp.integer;
  if (timestamp.integer == kTimestampInfinity || timestamp.integer == kTimestampMinusInfinity) return Failure::none;
  int64_t days = floor_divide(timestamp.integer, kMicrosPerDay);
  int64_t micros = timestamp.integer - days * kMicrosPerDay;
  const Civil civil = civil_from_days(days);
  if (*wanted > Field::hour) micros = 0;
  switch (*wanted) {
    case Field::second:
      micros -= micros % kMicrosPerSecond;
      break;
    case Field::minute:
      micros -= micros % (60 * kMicrosPerSecond);
      break;
    case Field::hour:
      micros -= micros % (3600 * kMicrosPerSecond);
      break;
    case Field::week:
      days -= (weekday(days) + 6) % 7;
      break;
    case Field::month:
      days = days_from_civil(civil.year, civil.month, 1);
      break;
    case Field::quarter:
      days = days_from_civil(civil.year, (civil.month - 1) / 3 * 3 + 1, 1);
      break;
    case Field::year:
      days = days_from_civil(civil.year, 1, 1);
      break;
    default:
      break;
  }
  if (days < kDayMin) return Failure::datetime_overflow;
  out.integer = days * kMicrosPerDay + micros;
  return Failure::none;
}

}  // namespace thalweg::rules
