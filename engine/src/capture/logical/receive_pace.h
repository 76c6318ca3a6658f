#pragma once

#include <chrono>
#include <cstdint>

namespace thalweg::capture {

// Whether messages come so fast that waiting for the next single one would cost more than handling it. A source sends
// each change by itself; an agent that keeps up is woken for each, and so is the sender. While it is hot, the agent
// naps for kNap instead and then finds a batch. Owner: the capture's agent.
class ReceivePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds kNap{300};  // what it may add to a change's latency
  // Behind by more than kBehind, latency is lost already. The longer nap lets the socket fill, so that the source sends
  // large segments instead of one for each change, which costs it a third less processor time.
  static constexpr std::chrono::microseconds kCatchUpNap{2000};
  static constexpr std::chrono::microseconds kBehind{1'000'000};
  static constexpr std::chrono::microseconds kWindow{1000};
  static constexpr uint64_t kHotMessages = 24;  // in a window

  // `messages`: received ever. Called whenever the agent has nothing more to handle.
  bool hot(Time now, uint64_t messages) {
    const auto elapsed = now - window_start_;
    if (elapsed >= kWindow) {
      hot_ = static_cast<double>(messages - window_messages_) *
                 static_cast<double>(std::chrono::nanoseconds(kWindow).count()) >=
             static_cast<double>(kHotMessages) * static_cast<double>(std::chrono::nanoseconds(elapsed).count());
      window_start_ = now;
      window_messages_ = messages;
    }
    return hot_;
  }

  // How long to nap while hot; `latency`: the age of the last commit that was received.
  static constexpr std::chrono::microseconds nap(std::chrono::microseconds latency) {
    return latency > kBehind ? kCatchUpNap : kNap;
  }

 private:
  Time window_start_{};
  uint64_t window_messages_ = 0;
  bool hot_ = false;
};

}  // namespace thalweg::capture
