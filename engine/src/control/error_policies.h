#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

// The parameter error_policies of the desired document: what is done with transactions that cannot be applied, by their
// errors (docs/decisions/error-queue.md).

namespace thalweg::control {

enum class PolicyAction : uint8_t { stop, park, skip, retry };

std::string_view name_of(PolicyAction action);

// Whether the text names errors of a transaction's data: an SQLSTATE, the first two characters of one, or a code.
bool names_errors(std::string_view text);
inline constexpr std::string_view kNamesOfErrors =
    "an SQLSTATE, the first two characters of one, or one of apply_conflict, apply_failed, initial_copy_inconsistent";

// Immutable once parsed.
struct ErrorPolicyDefinition {
  std::string error;   // an SQLSTATE, a class of them, or an error's code; empty: any
  std::string schema;  // with `table`; both empty: any table
  std::string table;
  PolicyAction action = PolicyAction::stop;
  int64_t times = 0;                                // retry: 1 to 100
  std::chrono::seconds delay{};                     // retry: 0 to 3600, before each
  PolicyAction after_retries = PolicyAction::stop;  // retry: stop, park or skip
  bool operator==(const ErrorPolicyDefinition&) const = default;
};

using ErrorPolicyDefinitions = std::vector<ErrorPolicyDefinition>;

// Fails with invalid_request that names the place below `pointer`.
base::Result<ErrorPolicyDefinitions> read_error_policies(const nlohmann::json& value, const std::string& pointer);
void to_json(nlohmann::json& out, const ErrorPolicyDefinition& policy);

}  // namespace thalweg::control
