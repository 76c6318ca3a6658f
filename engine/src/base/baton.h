#pragma once

#include <atomic>
#include <cstdint>

namespace thalweg::base {

// Work of an agent that other threads may do for it, so that their news need not wait until a processor wakes the
// agent. One thread at a time does the work; no thread waits for another, except an agent that has lent the baton.
//
// Protocol.
//   begin       The agent has the baton when it is made: nobody else works before its thread puts it down.
//   with news   A thread first leaves its news where the work looks for it, then calls work(). If the baton is free,
//               the caller does the work, and wakes the agent if it leaves something undone, for example because it
//               would have to wait. Else the holder looks for work once more before it puts the baton down.
//   sleep       The agent sleeps by sleep(), without the baton, once it has found nothing to do.
//   lend        The agent waits for something that has nothing to do with its work by lend(), without the baton, though
//               it may have work: threads with news do it meanwhile.
//   end         The agent ends with the baton, which nobody gets any more. A thread that comes then leaves its news
//               where it is, as if the agent were at work. An agent that begins again has the baton as before.
//
// Thread-safe: work() belongs to any thread, sleep() and lend() to the agent. The next holder sees everything that a
// thread has written before it put the baton down, or before it came with news.
class Baton {
 public:
  // Calls `look` on this thread, and again for every thread that came meanwhile. False: another thread has the baton
  // and will look once more, or the agent has ended; `look` was not called.
  template <typename Look>
  bool work(Look look) {
    if (!take()) return false;
    do {
      look();
    } while (!put_down());
    return true;
  }
  // Calls `wait` at least once and until the baton is free again, unless a thread came since the last look. False: a
  // thread came, and nothing was waited for.
  template <typename Wait>
  bool sleep(Wait wait) {
    if (!put_down()) return false;
    do {
      wait();
    } while (!take());
    return true;
  }
  // Calls `aside` without the baton, then `wait` as long as another thread has it. News that came before or meanwhile
  // may be left: the agent looks for work afterwards.
  template <typename Aside, typename Wait>
  void lend(Aside aside, Wait wait) {
    while (!put_down()) continue;
    aside();
    while (!take()) wait();
  }

 private:
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

  static constexpr uint8_t kFree = 0;
  static constexpr uint8_t kHeld = 1;
  static constexpr uint8_t kAsked = 2;  // held, and somebody came
  // Writers: everybody (read-modify-write). Release of put_down, or of a take that only leaves a note, pairs with
  // acquire of the take or put_down that finds it.
  std::atomic<uint8_t> state_{kHeld};
};

}  // namespace thalweg::base
