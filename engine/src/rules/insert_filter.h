#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "rules/rule_set.h"

namespace thalweg::rules {

// SQL that is TRUE for those rows of the table that the sets let pass as INSERTs, for the initial copy at the source.
// Empty: all rows. `source`: the value of the attribute.
std::expected<std::string, RuleRefusal> insert_filter(const RuleSets& sets, const RuleTable& table,
                                                      std::string_view source);

}  // namespace thalweg::rules
