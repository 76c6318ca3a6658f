#pragma once

#include <atomic>
#include <cstdint>

// Work that several threads may do, one at a time, without one of them waiting for another.

namespace thalweg::base {

// Thread-safe. Whoever has the baton does the work; who comes meanwhile only leaves word, and goes on with something
// else. What a thread has written before take() is seen by whoever does the work after it.
class Baton {
 public:
  // True: the caller has it, and must let it go. False: somebody else has, and will look for work once more.
  bool take() {
    uint8_t seen = kFree;
    // Also where word was left already: what came with that may have been seen, what comes now has not.
    while (!state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kAsked, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
    }
    return seen == kFree;
  }
  // False: somebody came meanwhile. The caller still has it, and looks for work once more.
  bool let_go() {
    uint8_t seen = kHeld;
    if (state_.compare_exchange_strong(seen, kFree, std::memory_order_release, std::memory_order_relaxed)) return true;
    state_.exchange(kHeld, std::memory_order_acq_rel);
    return false;
  }

 private:
  static constexpr uint8_t kFree = 0;
  static constexpr uint8_t kHeld = 1;
  static constexpr uint8_t kAsked = 2;  // held, and somebody came
  // Writers: everybody (read-modify-write).
  std::atomic<uint8_t> state_{kFree};
};

}  // namespace thalweg::base
