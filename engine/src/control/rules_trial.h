#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/networks.h"
#include "control/desired_state.h"
#include "control/rules_check.h"

// POST /v1/rules/test: what the rules of a table make of some of its rows, of changes that the request gives, and of
// the next ones that a stream captures.

namespace thalweg::control {

// Values as PostgreSQL writes them, by column; none: NULL.
using TriedRow = std::map<std::string, std::optional<std::string>>;

struct TriedChange {
  RuledOperation operation = RuledOperation::insert;
  TriedRow old_row = {};                // of an update or delete; a column that is left out is NULL
  TriedRow new_row = {};                // of an insert or update
  std::optional<std::string> tag = {};  // of its transaction, like its commit time
  std::optional<base::UnixMicros> commit_time = {};
};

// Of the next changes of the table that the stream captures.
struct RecentChanges {
  std::string stream;
  uint64_t limit = 1;
  std::chrono::milliseconds patience{0};  // how long to wait for them
};

struct RulesTrialRequest {
  base::Conninfo source_conninfo;
  std::string source_name;  // the attribute's value
  TableRef table;
  RulesDefinition rules;
  uint64_t sample = 0;  // rows of the table, as INSERTs
  std::vector<TriedChange> changes;
  std::optional<RecentChanges> recent = {};
};
base::Result<RulesTrialRequest> parse_rules_trial(std::string_view text);  // fails with invalid_request

struct RuleOutcome {
  bool is_positive = true;
  std::string rule;
  std::string_view outcome;  // TRUE, FALSE, NULL, UNDECIDABLE, FAILED, OTHER OPERATION
  // The same for the row before an update, where the rules make a subset.
  std::optional<std::string_view> before = {};
};

enum class ChangeOrigin : uint8_t { request, stream, table };
constexpr std::string_view name_of(ChangeOrigin origin) {
  constexpr std::array<std::string_view, 3> kNames = {"REQUEST", "STREAM", "TABLE"};
  return kNames[static_cast<size_t>(origin)];
}

struct JudgedChange {
  TriedChange change;
  std::vector<RuleOutcome> rules;
  std::string_view verdict;               // PASSED, DROPPED, BECOMES INSERT, BECOMES DELETE, STOPS THE STREAM
  std::optional<base::Error> error = {};  // that stops it
  ChangeOrigin origin = ChangeOrigin::request;
  // Of a change of a stream: columns that are in no row, because the source did not send their values, or because the
  // stream masks or drops them.
  std::vector<std::string> old_not_sent = {};
  std::vector<std::string> new_not_sent = {};
  std::vector<std::string> hidden = {};
};

struct RulesTrial {
  std::vector<RuleProblem> problems;  // as POST /v1/rules/check has them; where a rule is refused, nothing is judged
  std::vector<JudgedChange> changes;  // of the request, then of the stream, then of the table
  std::optional<std::string_view> recent_end = {};  // LIMIT, TIME, SIZE: why no more of the stream; none: not asked for
};
nlohmann::json rules_trial_document(const RulesTrial& trial);

}  // namespace thalweg::control
