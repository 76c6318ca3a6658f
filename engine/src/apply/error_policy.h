#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apply/conflict.h"
#include "base/error.h"

// Policies for transactions, and for single rows of them, that their data keeps from being applied.

namespace thalweg::apply {

enum class ErrorAction : uint8_t {
  stop,
  park,
  retry,
  skip,  // leaves the row out, where it is one row that fails
};

// Immutable.
struct ErrorPolicy {
  std::string error = {};  // an SQLSTATE, the first two characters of one, or the name of an error code; empty: any
  std::string table = {};  // schema-qualified and quoted, as errors name it; empty: any, and none
  ErrorAction action = ErrorAction::stop;
  int times = 0;                                  // retry: so often
  std::chrono::seconds delay{};                   // retry: before each
  ErrorAction after_retries = ErrorAction::stop;  // once it has been retried that often: not retry
  bool operator==(const ErrorPolicy&) const = default;
};

struct ErrorPolicies {
  std::vector<ErrorPolicy> entries = {};                // the first that matches decides
  std::vector<ConflictHandler> conflict_handlers = {};  // of single rows: before `entries`; the first that matches
  bool disable_on_error = true;                         // where none does: stop, else park
  bool operator==(const ErrorPolicies&) const = default;
};

// Whether the error is one of those that ErrorPolicy::error names so.
bool is_named(std::string_view name, const base::Error& error);

// About a whole transaction.
struct ErrorDecision {
  ErrorAction action = ErrorAction::stop;  // not skip
  std::chrono::seconds delay{};            // retry
  int times = 0;                           // retry: so often in all
};

// `retries`: how often the transaction has been retried already. Where a policy would skip a row, this is for what
// cannot be: disable_on_error decides.
ErrorDecision decide(const ErrorPolicies& policies, const base::Error& error, int retries);

// About one row of a transaction, whose others go on.
struct RowDecision {
  ConflictAction action = ConflictAction::error;  // of the conflict's handler
  bool skips = false;                             // where that is error, or cannot be done: leave the row out
  bool retries = false;                           // likewise: try the transaction again first
  std::vector<ConflictHandler> combined = {};     // in place of `action`: of groups of columns, in their order
  bool goes_on() const { return action != ConflictAction::error || skips || !combined.empty(); }
  bool operator==(const RowDecision&) const = default;
};
// `kind`: none where the error is no conflict; `general`: of which it is a case, and whose handlers decide, too.
RowDecision decide_row(const ErrorPolicies& policies, std::optional<ConflictKind> kind, const base::Error& error,
                       int retries, std::optional<ConflictKind> general = {});

// Thread-safe: a mutex, which only those take who have failed, or change them.
class LiveErrorPolicies {
 public:
  void set(const ErrorPolicies& policies) {
    const std::lock_guard lock(mutex_);
    if (policies == policies_) return;
    policies_ = policies;
    changes_.fetch_add(1, std::memory_order_release);
  }
  ErrorDecision decide(const base::Error& error, int retries) const {
    const std::lock_guard lock(mutex_);
    return apply::decide(policies_, error, retries);
  }
  RowDecision decide_row(std::optional<ConflictKind> kind, const base::Error& error, int retries,
                         std::optional<ConflictKind> general = {}) const {
    const std::lock_guard lock(mutex_);
    return apply::decide_row(policies_, kind, error, retries, general);
  }
  ErrorPolicies get() const {
    const std::lock_guard lock(mutex_);
    return policies_;
  }
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  ErrorPolicies policies_;
  // Writer: set (release). Reader: the coordinator (acquire), which has what waits for its retry tried at once.
  std::atomic<uint64_t> changes_{0};
};

}  // namespace thalweg::apply
