#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/desired_state.h"

// POST /v1/rules/check: whether rules fit the tables of a source.

namespace thalweg::control {

struct RulesCheckRequest {
  base::Conninfo source_conninfo;
  std::vector<TableRef> tables;
  std::set<TableRef> inserts_only;       // of these
  TableRules rules;                      // of these
  TableTransformations transformations;  // of these
};
base::Result<RulesCheckRequest> parse_rules_check(std::string_view text);  // fails with invalid_request

// A place in a condition's text: line and column in characters, from 1; the offset in bytes, from 0.
struct RulePlace {
  uint32_t line = 1;
  uint32_t column = 1;
  uint32_t offset = 0;
};

struct RuleProblem {
  std::string schema, table;
  std::optional<std::string> rule = {};  // none: it is about the table
  std::optional<size_t> step = {};       // of its transformations; none: it is not about one
  std::string code;                      // of the error that would stop the stream
  std::string message;
  std::optional<RulePlace> place = {};  // none: it is about the whole rule
  bool is_certain = true;               // false: only an update meets it that leaves a long value as it was
};
nlohmann::json rules_check_document(std::span<const RuleProblem> problems);

}  // namespace thalweg::control
