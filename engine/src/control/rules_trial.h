#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/desired_state.h"
#include "control/rules_check.h"

// POST /v1/rules/test: what the rules of a table make of some of its rows, and of changes that the request gives.

namespace thalweg::control {

// Values as PostgreSQL writes them, by column; none: NULL.
using TriedRow = std::map<std::string, std::optional<std::string>>;

struct TriedChange {
  RuledOperation operation = RuledOperation::insert;
  TriedRow old_row = {};  // of an update or delete; a column that is left out is NULL
  TriedRow new_row = {};  // of an insert or update
};

struct RulesTrialRequest {
  base::Conninfo source_conninfo;
  std::string source_name;  // the attribute's value
  TableRef table;
  RulesDefinition rules;
  uint64_t sample = 0;  // rows of the table, as INSERTs
  std::vector<TriedChange> changes;
};
base::Result<RulesTrialRequest> parse_rules_trial(std::string_view text);  // fails with invalid_request

struct RuleOutcome {
  bool is_positive = true;
  std::string rule;
  std::string_view outcome;  // TRUE, FALSE, NULL, UNDECIDABLE, FAILED, OTHER OPERATION
  // The same for the row before an update, where the rules make a subset.
  std::optional<std::string_view> before = {};
};

struct JudgedChange {
  TriedChange change;
  std::vector<RuleOutcome> rules;
  std::string_view verdict;               // PASSED, DROPPED, BECOMES INSERT, BECOMES DELETE, STOPS THE STREAM
  std::optional<base::Error> error = {};  // that stops it
};

struct RulesTrial {
  std::vector<RuleProblem> problems;  // as POST /v1/rules/check has them; where a rule is refused, nothing is judged
  std::vector<JudgedChange> changes;  // of the request, then of the table
};
nlohmann::json rules_trial_document(const RulesTrial& trial);

}  // namespace thalweg::control
