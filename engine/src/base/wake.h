#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/file.h"

namespace thalweg::base {

// Wakes an agent that waits for a descriptor as well: a Doorbell cannot, because it is none itself. Thread-safe:
// anybody rings, one owner waits. A ring enters the kernel, and is kept until a wait notices it.
class Wake {
 public:
  Wake() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  void ring() {
    const uint64_t increment = 1;
    // Fails only when the counter is full, and then the owner is awake anyway.
    [[maybe_unused]] const auto written = write(event_.descriptor(), &increment, sizeof(increment));
  }
  // Until it is rung, `other` has events (descriptor -1: none), or `timeout` has passed, or spuriously. True: `other`
  // has.
  bool wait(std::chrono::nanoseconds timeout, pollfd other = {.fd = -1, .events = 0, .revents = 0}) {
    std::array<pollfd, 2> polled{pollfd{.fd = event_.descriptor(), .events = POLLIN, .revents = 0}, other};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
    if (poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left, 0))) <= 0) return false;
    if (polled[0].revents != 0) clear();
    return polled[1].revents != 0;
  }
  // For whoever polls more than these.
  pollfd polled() const { return {.fd = event_.descriptor(), .events = POLLIN, .revents = 0}; }
  void clear() {
    uint64_t rings = 0;
    [[maybe_unused]] const auto got = read(event_.descriptor(), &rings, sizeof(rings));
  }

 private:
  File event_;
};

}  // namespace thalweg::base
