#include "rules/time_input.h"

#include <array>

#include "rules/text_input.h"

namespace thalweg::rules {

namespace {

// Reads from the front. Owner: one call.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Between `least` and `most` digits; -1: not so.
  int64_t digits(size_t least, size_t most) {
    int64_t value = 0;
    size_t count = 0;
    while (count < most && count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9') {
      value = value * 10 + (rest_[count++] - '0');
    }
    rest_.remove_prefix(count);
    return count < least ? -1 : value;
  }
  std::string_view word() {
    size_t count = 0;
    while (count < rest_.size() && ((rest_[count] | 0x20) >= 'a' && (rest_[count] | 0x20) <= 'z')) ++count;
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  void skip_blanks() {
    while (take(' ')) {
    }
  }
  // " BC" at the end: takes it off.
  bool take_era() {
    if (rest_.size() < 3 || !equals_word(rest_.substr(rest_.size() - 3), " bc")) return false;
    rest_.remove_suffix(3);
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

Failure read_date(Reader& reader, bool before_christ, int64_t& days) {
  int64_t year = reader.digits(4, 7);
  if (year < 1 || !reader.take('-')) return Failure::unsupported_form;
  if (before_christ) year = 1 - year;
  const int64_t month = reader.digits(2, 2);
  if (month < 0 || !reader.take('-')) return Failure::unsupported_form;
  const int64_t day = reader.digits(2, 2);
  if (day < 0) return Failure::unsupported_form;
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) return Failure::datetime_overflow;
  days = days_from_civil(year, month, day);
  return days < kDayMin || days >= kDateEnd ? Failure::datetime_overflow : Failure::none;
}

// HH:MM[:SS[.ffffff]], with up to `hour_digits` digits of hours.
Failure read_clock(Reader& reader, size_t hour_digits, int64_t& micros) {
  const int64_t hours = reader.digits(2, hour_digits);
  if (hours < 0 || !reader.take(':')) return Failure::unsupported_form;
  const int64_t minutes = reader.digits(2, 2);
  if (minutes < 0) return Failure::unsupported_form;
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (reader.take(':')) {
    seconds = reader.digits(2, 2);
    if (seconds < 0) return Failure::unsupported_form;
    if (reader.take('.')) {
      const size_t before = reader.rest().size();
      fraction = reader.digits(1, 6);
      if (fraction < 0) return Failure::unsupported_form;
      for (size_t read = before - reader.rest().size(); read < 6; ++read) fraction *= 10;
    }
  }
  micros = ((hours * 60 + minutes) * 60 + seconds) * kMicrosPerSecond + fraction;
  if (seconds == 60) return Failure::unsupported_form;  // which PostgreSQL takes for the next minute
  return minutes > 59 || seconds > 59 ? Failure::datetime_overflow : Failure::none;
}

Failure read_time_of_day(Reader& reader, int64_t& micros) {
  if (const Failure failure = read_clock(reader, 2, micros); failure != Failure::none) return failure;
  return micros > kMicrosPerDay ? Failure::datetime_overflow : Failure::none;
}

Failure read_zone(Reader& reader, int64_t& micros) {
  reader.skip_blanks();
  if (equals_word(reader.rest(), "z") || equals_word(reader.rest(), "utc")) {
    reader.word();
    micros = 0;
    return Failure::none;
  }
  const bool west = reader.take('-');
  if (!west && !reader.take('+')) return Failure::unsupported_form;
  const int64_t hours = reader.digits(2, 2);
  const int64_t minutes = reader.take(':') ? reader.digits(2, 2) : 0;
  const int64_t seconds = reader.take(':') ? reader.digits(2, 2) : 0;
  if (hours < 0 || hours > 15 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59) {
    return Failure::unsupported_form;
  }
  micros = ((hours * 60 + minutes) * 60 + seconds) * kMicrosPerSecond * (west ? -1 : 1);
  return Failure::none;
}

struct Unit {
  std::string_view name;  // without a plural's s
  int64_t micros;
  int64_t days;
  int64_t months;
};

constexpr std::array kUnits{
    Unit{"microsecond", 1, 0, 0},
    Unit{"millisecond", 1000, 0, 0},
    Unit{"second", kMicrosPerSecond, 0, 0},
    Unit{"minute", 60 * kMicrosPerSecond, 0, 0},
    Unit{"hour", 3600 * kMicrosPerSecond, 0, 0},
    Unit{"day", 0, 1, 0},
    Unit{"week", 0, 7, 0},
    Unit{"month", 0, 0, 1},
    Unit{"mon", 0, 0, 1},
    Unit{"year", 0, 0, 12},
};

const Unit* find_unit(std::string_view word) {
  if (word.size() > 1 && (word.back() | 0x20) == 's') word.remove_suffix(1);
  for (const Unit& unit : kUnits) {
    if (equals_word(word, unit.name)) return &unit;
  }
  return nullptr;
}

// The parts of an interval's text, as they add up. PostgreSQL takes no unit twice.
struct IntervalParts {
  int64_t micros = 0;
  int64_t days = 0;
  int64_t months = 0;
  uint32_t taken = 0;  // bits: indexes in kUnits; a clock is kClock

  static constexpr uint32_t kClock = 0b11100;  // seconds, minutes, hours
  Failure take(uint32_t bits) {
    if ((taken & bits) != 0) return Failure::invalid_datetime;
    taken |= bits;
    return Failure::none;
  }
};

Failure read_interval_clock(Reader& reader, bool minus, IntervalParts& parts) {
  constexpr size_t kHourDigits = 9;  // 10^9 hours are in range
  int64_t clock = 0;
  if (read_clock(reader, kHourDigits, clock) != Failure::none) return Failure::unsupported_form;
  parts.micros += minus ? -clock : clock;
  return parts.take(IntervalParts::kClock);
}

Failure read_interval_unit(Reader& reader, bool minus, IntervalParts& parts) {
  const int64_t count = reader.digits(1, 7);
  reader.skip_blanks();
  const Unit* const unit = find_unit(reader.word());
  const bool ends = reader.rest().empty() || reader.rest().starts_with(' ');
  if (count < 0 || unit == nullptr || !ends) return Failure::unsupported_form;
  const int64_t signed_count = minus ? -count : count;
  parts.micros += signed_count * unit->micros;
  parts.days += signed_count * unit->days;
  parts.months += signed_count * unit->months;
  const auto bit = static_cast<uint32_t>(unit - kUnits.data());
  return parts.take(uint32_t{1} << (unit->name == "mon" ? bit - 1 : bit));
}

bool begins_with_clock(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789");
  return digits != std::string_view::npos && digits > 0 && text[digits] == ':';
}

}  // namespace

int64_t days_from_civil(int64_t year, int64_t month, int64_t day) {
  if (month <= 2) --year;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 730'425;
}

Civil civil_from_days(int64_t days) {
  days += 730'425;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t day_of_era = days - era * 146'097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * shifted + 2) / 5 + 1};
}

int64_t days_in_month(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[static_cast<size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

Failure input_time(Type type, std::string_view text, Datum& out) {
  if (type != Type::time && (equals_word(text, "infinity") || equals_word(text, "-infinity"))) {
    const bool minus = text.starts_with('-');
    out.integer = type == Type::date ? (minus ? kDateMinusInfinity : kDateInfinity)
                                     : (minus ? kTimestampMinusInfinity : kTimestampInfinity);
    return Failure::none;
  }
  Reader reader(text);
  int64_t days = 0;
  int64_t micros = 0;
  int64_t zone = 0;
  if (type != Type::time) {
    const bool before_christ = reader.take_era();
    if (const Failure failure = read_date(reader, before_christ, days); failure != Failure::none) return failure;
  }
  if (type == Type::time) {
    if (const Failure failure = read_time_of_day(reader, micros); failure != Failure::none) return failure;
  } else if (type != Type::date && !reader.rest().empty()) {
    if (!reader.take('T') && !reader.take(' ')) return Failure::unsupported_form;
    if (const Failure failure = read_time_of_day(reader, micros); failure != Failure::none) return failure;
  }
  if (type == Type::timestamptz) {
    if (const Failure failure = read_zone(reader, zone); failure != Failure::none) return failure;
  }
  if (!reader.rest().empty()) return Failure::unsupported_form;
  if (type == Type::date) {
    out.integer = days;
    return Failure::none;
  }
  if (days >= kTimestampDayEnd) return Failure::datetime_overflow;
  out.integer = days * kMicrosPerDay + micros - zone;
  return type == Type::time || is_timestamp(out.integer) ? Failure::none : Failure::datetime_overflow;
}

Failure input_interval(std::string_view text, Datum& out) {
  Reader reader(text);
  IntervalParts parts;
  int count = 0;
  bool later_sign = false;
  const bool first_minus = text.starts_with('-');
  while (!reader.rest().empty()) {
    const bool minus = reader.take('-');
    const bool plus = !minus && reader.take('+');
    later_sign = later_sign || (count > 0 && (minus || plus));
    const Failure failure = begins_with_clock(reader.rest()) ? read_interval_clock(reader, minus, parts)
                                                             : read_interval_unit(reader, minus, parts);
    if (failure != Failure::none) return failure;
    ++count;
    reader.skip_blanks();
  }
  // "-1 year 2 days": IntervalStyle decides whether the sign is of both.
  if (count == 0 || (first_minus && count > 1 && !later_sign)) return Failure::unsupported_form;
  out.integer = parts.micros;
  out.calendar = {.days = static_cast<int32_t>(parts.days), .months = static_cast<int32_t>(parts.months)};
  return Failure::none;
}

}  // namespace thalweg::rules
