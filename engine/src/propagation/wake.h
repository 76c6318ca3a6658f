#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/file.h"

namespace thalweg::propagation {

// Wakes an agent that sleeps in poll(2): a base::Doorbell cannot, because it is no descriptor. Thread-safe: anybody
// rings, one owner clears and polls.
class Wake {
 public:
  Wake() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  void ring() {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the owner is awake anyway.
    [[maybe_unused]] const auto written = write(event_.descriptor(), &one, sizeof(one));
  }
  void clear() {
    uint64_t rings = 0;
    [[maybe_unused]] const auto got = read(event_.descriptor(), &rings, sizeof(rings));
  }
  int descriptor() const { return event_.descriptor(); }
  pollfd polled() const { return {.fd = event_.descriptor(), .events = POLLIN, .revents = 0}; }

 private:
  base::File event_;
};

}  // namespace thalweg::propagation
