#pragma once

#include <string_view>

#include "rules/value.h"

namespace thalweg::rules {

// LIKE over UTF-8, with a backslash as the escape character. Whether `text` matches goes to `matches`.
Failure match_like(Scratch& scratch, std::string_view text, std::string_view pattern, bool& matches);

// The pattern with backslashes in place of another escape character; of length 0: none.
Failure with_backslashes(Scratch& scratch, std::string_view pattern, std::string_view escape, Datum& out);

}  // namespace thalweg::rules
