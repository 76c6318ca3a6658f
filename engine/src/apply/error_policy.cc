#include "apply/error_policy.h"

#include <algorithm>
#include <string_view>

namespace thalweg::apply {

namespace {

constexpr size_t kClassLength = 2;  // of an SQLSTATE

bool matches(const ErrorPolicy& policy, const base::Error& error) {
  return (policy.table.empty() || policy.table == error.table) && is_named(policy.error, error);
}

const ErrorPolicy* find_policy(const ErrorPolicies& policies, const base::Error& error) {
  const auto found =
      std::ranges::find_if(policies.entries, [&](const ErrorPolicy& policy) { return matches(policy, error); });
  return found == policies.entries.end() ? nullptr : &*found;
}

// The action of `policy` after so many retries.
ErrorAction action_of(const ErrorPolicy& policy, int retries) {
  return policy.action == ErrorAction::retry && retries >= policy.times ? policy.after_retries : policy.action;
}

}  // namespace

bool is_named(std::string_view name, const base::Error& error) {
  if (name.empty() || name == base::name_of(error.code)) return true;
  const std::string_view sqlstate = error.sqlstate;
  return !sqlstate.empty() && (name == sqlstate || name == sqlstate.substr(0, kClassLength));
}

ErrorDecision decide(const ErrorPolicies& policies, const base::Error& error, int retries) {
  const ErrorPolicy* const policy = find_policy(policies, error);
  const ErrorAction action = policy == nullptr ? ErrorAction::skip : action_of(*policy, retries);
  if (action == ErrorAction::skip) {
    return {.action = policies.disable_on_error ? ErrorAction::stop : ErrorAction::park};
  }
  if (action == ErrorAction::retry) return {.action = action, .delay = policy->delay, .times = policy->times};
  return {.action = action};
}

RowDecision decide_row(const ErrorPolicies& policies, std::optional<ConflictKind> kind, const base::Error& error,
                       int retries, std::optional<ConflictKind> general) {
  RowDecision decision;
  for (const ConflictHandler& handler : policies.conflict_handlers) {
    if ((handler.kind != kind && handler.kind != general) || (!handler.table.empty() && handler.table != error.table))
      continue;
    const bool decides_alone = handler.columns.empty() && handler.action <= ConflictAction::overwrite;
    if (decides_alone && decision.combined.empty()) {
      decision.action = handler.action;
    } else {
      decision.combined.push_back(handler);
    }
    if (handler.columns.empty()) break;
  }
  const ErrorPolicy* const policy = find_policy(policies, error);
  decision.skips = policy != nullptr && action_of(*policy, retries) == ErrorAction::skip;
  decision.retries = policy != nullptr && action_of(*policy, retries) == ErrorAction::retry;
  return decision;
}

}  // namespace thalweg::apply
