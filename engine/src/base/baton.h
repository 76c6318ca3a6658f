#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg::base {

// Work of an agent that other threads may do for it, so that their news need not wait until a processor wakes the
// agent. One thread at a time does the work; no thread waits for another.
//
// Protocol. The agent's thread takes the baton when it begins, and sleeps by sleep(), which puts the baton down
// meanwhile. A thread with news first leaves it where the work looks for it, then calls work(). If the baton is free,
// the caller does the work; else its holder looks for work once more before it puts the baton down. If work() leaves
// something undone, for example because it would have to wait, the caller must wake the agent.
//
// Thread-safe. The next worker sees everything that a thread has written before work() or take().
class Baton {
 public:
  // For a thread with news: calls `look` on this thread, and again for every thread that came meanwhile. False: another
  // thread has the baton and will look once more; `look` was not called.
  template <typename Look>
  bool work(Look look) {
    if (!take()) return false;
    do {
      look();
    } while (!put_down());
    return true;
  }
  // For the agent, with the baton: calls `wait` at least once and until the baton is free again, unless a thread came
  // since the last look. False: a thread came, and nothing was waited for.
  template <typename Wait>
  bool sleep(Wait wait) {
    if (!put_down()) return false;
    do {
      wait();
    } while (!take());
    return true;
  }
  // True: the caller has it, and must put it down. False: another thread has it, and will look for work once more.
  bool take() {
    uint8_t seen = kFree;
    // Even if a note is there already: its holder may have seen the earlier news, but not this one.
    while (!state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kAsked, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
    }
    return seen == kFree;
  }
  // False: a thread came meanwhile. The caller still has the baton, and looks for work once more.
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
