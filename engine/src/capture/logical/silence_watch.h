#pragma once

#include <chrono>
#include <cstdint>

namespace thalweg::capture {

// Whether a source that sends nothing is still there. A path that has been cut says nothing either: without a look at
// the clock an agent would wait for as long as TCP does, which may be hours. As PostgreSQL's own receiver with
// wal_receiver_timeout at its default (walreceiver.c): ask after half a minute, give up when no answer has come after
// another half. Time in which the agent did not read is no silence. Owner: the capture's agent.
class SilenceWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kPatience{30};

  enum class Verdict : uint8_t { fine, ask, gone };

  // `messages`: received ever. Called whenever the agent has read all that is there. `ask` comes once a silence.
  Verdict look(Time now, uint64_t messages) {
    if (messages != messages_ || since_ == Time{}) {
      messages_ = messages;
      since_ = now;
      asked_ = false;
      return Verdict::fine;
    }
    if (now - since_ < kPatience) return Verdict::fine;
    if (asked_) return Verdict::gone;
    asked_ = true;
    since_ = now;
    return Verdict::ask;
  }

 private:
  bool asked_ = false;
  uint64_t messages_ = 0;
  Time since_{};  // of the last message, or of the question
};

}  // namespace thalweg::capture
