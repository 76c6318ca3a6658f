#pragma once

#include <string_view>

#include "rules/value.h"

namespace thalweg::rules {

// date, time, timestamp and timestamptz: YYYY-MM-DD, HH:MM[:SS[.ffffff]], both with a blank or T between, for
// timestamptz Z or +HH[:MM[:SS]], and BC at the end; infinity and -infinity. This is what PostgreSQL writes, too, with
// DateStyle ISO.
Failure input_time(Type type, std::string_view text, Datum& out);

// Whole numbers with their units, in any order, and HH:MM[:SS[.ffffff]]: "1 year -2 days +03:04". This is what
// PostgreSQL writes, too, with IntervalStyle postgres.
Failure input_interval(std::string_view text, Datum& out);

}  // namespace thalweg::rules
