#pragma once

#include <chrono>

#include "base/ids.h"

namespace thalweg::capture {

// A server that is shut down keeps its senders, and waits for them, until their receivers have confirmed everything
// (WalSndDone of src/backend/replication/walsender.c). A receiver that answers and has no room, or waits for a
// destination that is away, would keep it for ever: its session is to end then. Unconfirmed changes come again. Owner:
// the capture's agent.
class ShutdownWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kPatience{10};

  // `durable`: what was confirmed, or can be. True: the server has been shutting down for longer than the patience,
  // and nothing became durable meanwhile.
  bool look(Time now, bool is_shutting_down, base::Lsn durable) {
    if (!is_shutting_down || durable != durable_ || since_ == Time{}) {
      durable_ = durable;
      since_ = is_shutting_down ? now : Time{};
      return false;
    }
    return now - since_ >= kPatience;
  }

 private:
  base::Lsn durable_;
  Time since_{};  // when something became durable, or the shutdown was seen; none: there is none
};

}  // namespace thalweg::capture
