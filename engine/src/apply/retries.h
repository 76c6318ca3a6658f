#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "apply/error_policy.h"
#include "base/error.h"
#include "base/ids.h"

namespace thalweg::apply {

// A transaction whose error a policy has retried.
struct Retry {
  int number = 0;                             // the one that it waits for, or had last; from 1
  int times = 0;                              // as many there are at most
  std::chrono::steady_clock::time_point due;  // not before
  base::UnixMicros at;                        // the same, as the wall clock shows it
  base::UnixMicros failed_at;
  base::Error error = {};
};

// The retries of one destination's transactions. It outlives an apply, which may end for many reasons that are not the
// transaction's: the next one goes on counting, and waits as long as was left. Thread-safe: a mutex, which is taken
// only where there are any.
class Retries {
 public:
  void note(base::Lsn commit_lsn, base::Xid xid, Retry retry) {
    const std::lock_guard lock(mutex_);
    retries_.insert_or_assign({commit_lsn.value, xid.value}, std::move(retry));
    count_.store(retries_.size(), std::memory_order_relaxed);
  }
  std::optional<Retry> find(base::Lsn commit_lsn, base::Xid xid) const {
    if (count_.load(std::memory_order_relaxed) == 0) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto found = retries_.find({commit_lsn.value, xid.value});
    return found == retries_.end() ? std::nullopt : std::optional(found->second);
  }
  // Forgets a transaction that has committed or was parked.
  void forget(base::Lsn commit_lsn, base::Xid xid) {
    const std::lock_guard lock(mutex_);
    retries_.erase({commit_lsn.value, xid.value});
    count_.store(retries_.size(), std::memory_order_relaxed);
  }
  void forget_before(base::Lsn applied) {
    const std::lock_guard lock(mutex_);
    retries_.erase(retries_.begin(), retries_.lower_bound({applied.value, 0}));
    count_.store(retries_.size(), std::memory_order_relaxed);
  }
  // Stopped: counting begins again.
  void clear() { forget_before({UINT64_MAX}); }
  // Takes up the policies as they are now: with others nothing waits any longer.
  void go_by(const ErrorPolicies& policies) {
    const std::lock_guard lock(mutex_);
    if (policies_ == policies) return;
    policies_ = policies;
    for (auto& [transaction, retry] : retries_) retry.due = {};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<uint64_t, uint32_t>, Retry> retries_;  // by commit LSN and xid
  ErrorPolicies policies_;
  // Writers: under the mutex. Readers: anybody (relaxed: they look again).
  std::atomic<size_t> count_{0};
};

}  // namespace thalweg::apply
