#include "control/error_policies.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using base::ErrorCode;
using nlohmann::json;

constexpr size_t kPoliciesMax = 100;
constexpr size_t kErrorBytesMax = 64;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own
constexpr int64_t kTimesMax = 100;
constexpr int64_t kDelaySecondsMax = 3600;
constexpr std::array<std::string_view, 4> kActions = {"stop", "park", "skip", "retry"};
// Codes of errors that a transaction's data can cause.
constexpr std::array kCodes = {ErrorCode::apply_conflict, ErrorCode::apply_failed,
                               ErrorCode::initial_copy_inconsistent};

bool is_of_sqlstates(std::string_view text) {
  return (text.size() == 2 || text.size() == 5) &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
}

PolicyAction read_action(ObjectReader& reader, std::string_view member, std::span<const std::string_view> allowed) {
  const std::string text = reader.string(member, 1, kErrorBytesMax);
  const auto found = std::ranges::find(allowed, text);
  if (found != allowed.end()) return static_cast<PolicyAction>(found - allowed.begin());
  if (!reader.failed()) reader.refuse(member, fmt::format("must be one of {}", fmt::join(allowed, ", ")));
  return PolicyAction::stop;
}

int64_t read_count(ObjectReader& reader, std::string_view member, int64_t least, int64_t most) {
  const auto number = static_cast<int64_t>(reader.unsigned_integer(member));
  if (!reader.failed() && (number < least || number > most)) {
    reader.refuse(member, fmt::format("must be a whole number from {} to {}", least, most));
  }
  return number;
}

base::Result<ErrorPolicyDefinition> read_policy(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  ErrorPolicyDefinition out;
  if (reader.member("error", false)) {
    out.error = reader.string("error", 1, kErrorBytesMax);
    if (!reader.failed() && !names_errors(out.error)) reader.refuse("error", fmt::format("must be {}", kNamesOfErrors));
  }
  const bool has_schema = reader.member("schema", false) != nullptr;
  if (has_schema || reader.member("table", false) != nullptr) {
    out.schema = reader.string("schema", 1, kIdentifierBytesMax);
    out.table = reader.string("table", 1, kIdentifierBytesMax);
  }
  out.action = read_action(reader, "action", kActions);
  if (out.action == PolicyAction::retry) {
    out.times = read_count(reader, "times", 1, kTimesMax);
    out.delay = std::chrono::seconds(read_count(reader, "delay_seconds", 0, kDelaySecondsMax));
    out.after_retries = read_action(reader, "after_retries", std::span(kActions).first(3));
  }
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

bool names_errors(std::string_view text) {
  return is_of_sqlstates(text) ||
         std::ranges::any_of(kCodes, [&](ErrorCode code) { return text == base::name_of(code); });
}

std::string_view name_of(PolicyAction action) { return kActions[static_cast<size_t>(action)]; }

base::Result<ErrorPolicyDefinitions> read_error_policies(const json& value, const std::string& pointer) {
  if (!value.is_array() || value.size() > kPoliciesMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} policies", kPoliciesMax)));
  }
  ErrorPolicyDefinitions out;
  for (size_t i = 0; i < value.size(); ++i) {
    THALWEG_ASSIGN(ErrorPolicyDefinition policy, read_policy(value[i], fmt::format("{}/{}", pointer, i)));
    out.push_back(std::move(policy));
  }
  return out;
}

void to_json(json& out, const ErrorPolicyDefinition& policy) {
  out = {{"action", name_of(policy.action)}};
  if (!policy.error.empty()) out["error"] = policy.error;
  if (!policy.table.empty()) {
    out["schema"] = policy.schema;
    out["table"] = policy.table;
  }
  if (policy.action != PolicyAction::retry) return;
  out["times"] = policy.times;
  out["delay_seconds"] = policy.delay.count();
  out["after_retries"] = name_of(policy.after_retries);
}

}  // namespace thalweg::control
