#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg::base {

// Work of an agent that other threads may do for it, so that their news does not wait for a processor to wake the
// agent. One thread at a time works; nobody waits for another one.
//
// Protocol. The agent's thread takes the baton when it begins, and sleeps by sleep(), which puts the baton down
// meanwhile. Whoever has news first leaves it where the work looks for it, then calls work(): if the baton is free, the
// caller does the work; else its holder looks for work once more before it puts the baton down. What work() could not
// do, because it would have to wait say, is the caller's reason to wake the agent.
//
// Thread-safe. What a thread has written before work() or take() is seen by whoever works after it.
class Baton {
 public:
  // For who has news: calls `look` on this thread, again for everybody who came meanwhile. False: somebody else has the
  // baton and will look once more; `look` was not called.
  template <typename Look>
  bool work(Look look) {
    if (!take()) return false;
    do {
      look();
    } while (!put_down());
    return true;
  }
  // For the agent, with the baton: `wait`, at least once and until the baton is free again, unless somebody came since
  // the last look. False: somebody came, nothing was waited for.
  template <typename Wait>
  bool sleep(Wait wait) {
    if (!put_down()) return false;
    do {
      wait();
    } while (!take());
    return true;
  }
  // True: the caller has it, and must put it down. False: somebody else has, and will look for work once more.
  bool take() {
    uint8_t seen = kFree;
    // Also where word was left already: what came with that may have been seen, what comes now has not.
    while (!state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kAsked, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
    }
    return seen == kFree;
  }
  // False: somebody came meanwhile. The caller still has it, and looks for work once more.
  bool put_down() {
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
