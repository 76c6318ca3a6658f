#include "rules/value.h"

#include <array>
#include <utility>

namespace thalweg::rules {

namespace {

struct Meaning {
  std::string_view sqlstate;
  std::string_view message;
};

constexpr std::array kMeanings{
    Meaning{"00000", "success"},
    Meaning{"22012", "division by zero"},
    Meaning{"22003", "a number is out of its type's range"},
    Meaning{"22P02", "a text is no value of the type it is cast to"},
    Meaning{"22007", "a text is no date or time"},
    Meaning{"22008", "a date or time is out of range"},
    Meaning{"22011", "the length of a substring is negative"},
    Meaning{"22025", "a pattern ends with its escape character, or that is longer than one character"},
    Meaning{"22023", "an argument has a value that the function does not take"},
    Meaning{"2202E", "there is no byte or bit of this number"},
    Meaning{"2201F", "a negative number has no square root"},
    Meaning{"54000", "no character has this number"},
    Meaning{"0A000", "PostgreSQL has no such conversion for this value"},
    Meaning{"54000", "a value is too large to compute with"},
    Meaning{"54000", "the values are too long to compute with in the time that a rule may take"},
    Meaning{"XX001", "a value of the row cannot be of its column's type"},
    Meaning{"0A000", "this way of writing the value depends on PostgreSQL's settings"},
};

}  // namespace

std::string_view sqlstate_of(Failure failure) { return kMeanings[std::to_underlying(failure)].sqlstate; }
std::string_view message_of(Failure failure) { return kMeanings[std::to_underlying(failure)].message; }

}  // namespace thalweg::rules
