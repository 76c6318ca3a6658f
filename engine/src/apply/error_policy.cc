#include "apply/error_policy.h"

#include <algorithm>
#include <string_view>

namespace thalweg::apply {

namespace {

constexpr size_t kClassLength = 2;  // of an SQLSTATE

bool matches(const ErrorPolicy& policy, const base::Error& error) {
  if (!policy.table.empty() && policy.table != error.table) return false;
  if (policy.error.empty() || policy.error == base::name_of(error.code)) return true;
  const std::string_view sqlstate = error.sqlstate;
  return !sqlstate.empty() && (policy.error == sqlstate || policy.error == sqlstate.substr(0, kClassLength));
}

}  // namespace

ErrorDecision decide(const ErrorPolicies& policies, const base::Error& error, int retries) {
  const auto found =
      std::ranges::find_if(policies.entries, [&](const ErrorPolicy& policy) { return matches(policy, error); });
  if (found == policies.entries.end()) {
    return {.action = policies.disable_on_error ? ErrorAction::stop : ErrorAction::park};
  }
  if (found->action != ErrorAction::retry) return {.action = found->action};
  if (retries >= found->times) return {.action = found->after_retries};
  return {.action = ErrorAction::retry, .delay = found->delay};
}

}  // namespace thalweg::apply
