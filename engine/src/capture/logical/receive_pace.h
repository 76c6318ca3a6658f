#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace thalweg::capture {

// Whether messages come so fast that waiting for the next single one would cost more than handling it. A source sends
// each change by itself; an agent that keeps up is woken for each, and so is the sender. While it is hot, the agent
// naps instead and then finds a batch. Owner: the capture's agent.
class ReceivePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A nap adds to a change's latency, so it is a small part of the delay that there is. Through a long one the source
  // fills its socket and then sends large segments instead of one for each change, at a third less processor time.
  static constexpr std::chrono::microseconds kNapMin{300};
  static constexpr std::chrono::microseconds kNapMax{20'000};
  static constexpr int kNapPart = 50;
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

  // How the source's messages come.
  struct Source {
    bool over_tcp = true;  // a local socket holds some 250 messages of any size: a long nap there makes the source wait
    bool in_batches = false;  // a message is many changes: being woken for each costs little
  };
  // How long to nap while hot, possibly not at all; `delay`: from the last commit to when the source sent it, on the
  // source's own clock.
  static constexpr std::chrono::microseconds nap(std::chrono::microseconds delay, Source source) {
    if (source.in_batches && delay / kNapPart < kNapMin) return std::chrono::microseconds{0};
    return source.over_tcp ? std::clamp(delay / kNapPart, kNapMin, kNapMax) : kNapMin;
  }

 private:
  Time window_start_{};
  uint64_t window_messages_ = 0;
  bool hot_ = false;
};

}  // namespace thalweg::capture
