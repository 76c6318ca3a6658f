#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "control/strict_json.h"

// The rules of a table in the desired document: which of its changes a stream passes on (docs/decisions/rules.md).
// Whether a condition fits its table is for whoever has the table to say.

namespace thalweg::control {

enum class RuledOperation : uint8_t { insert, update, remove, truncate };

std::string_view name_of(RuledOperation operation);
std::optional<RuledOperation> operation_named(std::string_view name);  // none: there is none of this name

// Where a rule of a table comes from: it is its own, its schema's, or for all tables. For messages.
enum class RuleScope : uint8_t { table, schema, global };

// The policy of a rule for a change for which its condition is undecidable or fails: what the rule counts as.
enum class OnRuleError : uint8_t { stop, as_true, as_false };

struct RuleDefinition {
  std::string name;
  std::set<RuledOperation> operations;  // empty: all
  std::string condition;                // empty: always
  bool subset = false;                  // its rows are at the destination, whatever updates do with them
  RuleScope scope = RuleScope::table;
  OnRuleError on_error = OnRuleError::stop;
  bool operator==(const RuleDefinition&) const = default;
};

// A set that is absent is not the same as one that is empty.
struct RulesDefinition {
  std::optional<std::vector<RuleDefinition>> positive;
  std::optional<std::vector<RuleDefinition>> negative;
  bool operator==(const RulesDefinition&) const = default;
};

// The members "positive" and "negative" of an object. Fails with invalid_request.
base::Result<RulesDefinition> read_rule_sets(ObjectReader& reader);
// The member "rules" of a table; none where it has neither set. Fails with invalid_request.
base::Result<std::optional<RulesDefinition>> read_rules(ObjectReader& table);
nlohmann::json to_json(const RulesDefinition& rules);

}  // namespace thalweg::control
