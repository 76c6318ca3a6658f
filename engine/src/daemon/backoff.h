#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace thalweg::daemon {

// Growing delays between tries: 0.5 s doubling to 15 s or `last`, each spread by a fifth so that many streams on one
// database do not come back in step. Owner: one thread.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFirst{500};
  static constexpr std::chrono::milliseconds kLast{15'000};
  static constexpr std::chrono::seconds kHealthy{60};  // of work without an error start over

  explicit Backoff(uint64_t seed, std::chrono::milliseconds last = kLast) : last_(last), random_(seed) {}

  std::chrono::milliseconds next() {
    std::chrono::milliseconds delay = next_;
    next_ = std::min(next_ * 2, last_);
    std::uniform_real_distribution<double> spread(0.8, 1.2);
    return std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(delay.count()) * spread(random_)));
  }
  void worked(Clock::duration duration) {
    if (duration >= kHealthy) reset();
  }
  void reset() { next_ = kFirst; }

 private:
  const std::chrono::milliseconds last_;
  std::mt19937_64 random_;
  std::chrono::milliseconds next_ = kFirst;
};

}  // namespace thalweg::daemon
