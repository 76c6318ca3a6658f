#pragma once

#include <atomic>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"

namespace thalweg::daemon {

// The time that one request may spend on rules: each evaluation is bounded, but there may be many. Owner: the request's
// thread.
class RulesTime {
 public:
  static constexpr std::chrono::seconds kMax{20};

  // `abandon`: true once the engine ends; outlives this.
  explicit RulesTime(const std::atomic<bool>& abandon)
      : abandon_(abandon), end_(std::chrono::steady_clock::now() + kMax) {}

  // Fails with invalid_request once it is used up, and with database_busy when the engine ends.
  base::Result<void> check() const {
    if (abandon_) return base::fail(base::ErrorCode::database_busy, "The engine ends");
    if (std::chrono::steady_clock::now() < end_) return {};
    return base::fail(
        base::ErrorCode::invalid_request,
        fmt::format("These rules take more than {} seconds to check. Shorten the texts that they compare.",
                    kMax.count()));
  }

 private:
  const std::atomic<bool>& abandon_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace thalweg::daemon
