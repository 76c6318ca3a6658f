#pragma once

#include <string_view>

#include "rules/syntax.h"

namespace thalweg::rules {

inline constexpr uint32_t kNestingMax = 256;

// Reads a condition. A refusal says where. Refused besides wrong syntax: what nests deeper than kNestingMax.
Ruled<Expression> parse(std::string_view text);

}  // namespace thalweg::rules
