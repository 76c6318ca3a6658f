#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

// Policies for transactions that their data keeps from being applied.

namespace thalweg::apply {

enum class ErrorAction : uint8_t { stop, park, retry };

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
  std::vector<ErrorPolicy> entries = {};  // the first that matches decides
  bool disable_on_error = true;           // where none does: stop, else park
  bool operator==(const ErrorPolicies&) const = default;
};

struct ErrorDecision {
  ErrorAction action = ErrorAction::stop;
  std::chrono::seconds delay{};  // retry
};

// `retries`: how often the transaction has been retried already.
ErrorDecision decide(const ErrorPolicies& policies, const base::Error& error, int retries);

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
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  ErrorPolicies policies_;
  // Writer: set (release). Reader: the coordinator (acquire), which has what waits for its retry tried at once.
  std::atomic<uint64_t> changes_{0};
};

}  // namespace thalweg::apply
