#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rules/value.h"

namespace thalweg::rules {

// Fields that extract() and date_trunc() take from a time.
enum class Field : uint8_t { second, minute, hour, day, week, month, quarter, year, dow, isodow, doy, epoch };

std::optional<Field> find_field(std::string_view name);
// Whether the function takes the field: pg_proc.prosrc and a name.
bool has_field(std::string_view function, std::string_view name);

// A field of a day, from 2000-01-01 on: no field of its time, nor the epoch.
int64_t field_of_day(Field field, int64_t days);
// The beginning of a date; one past the last timestamp has none.
Failure midnight(int64_t date, int64_t& timestamp);

Failure extract_date(Scratch&, const Datum& field, const Datum& date, const Datum&, Datum& out);
Failure extract_time(Scratch&, const Datum& field, const Datum& time, const Datum&, Datum& out);
Failure extract_interval(Scratch&, const Datum& field, const Datum& interval, const Datum&, Datum& out);
Failure extract_timestamp(Scratch&, const Datum& field, const Datum& timestamp, const Datum&, Datum& out);
Failure truncate_timestamp(Scratch&, const Datum& field, const Datum& timestamp, const Datum&, Datum& out);

}  // namespace thalweg::rules
