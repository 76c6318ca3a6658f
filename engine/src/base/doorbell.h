#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

// A wake-up flag for one waiting agent (Wong et al. 2009, section III.B: bounded waits with wake-up flags).

namespace thalweg::base {

// Thread-safe: one owner waits, any thread rings. Waits are bounded, so a ring that nobody gave costs time, never
// liveness.
//
// Use:   uint32_t seen = bell.ticket();  if (nothing to do) bell.wait(seen, timeout);
// A ring after ticket() makes the wait return at once. Writes of a ringer before ring() are visible after a ticket() or
// a wait() that noticed the ring. ring() costs one atomic addition; it enters the kernel only when the owner sleeps.
// Ring per batch, not per item.
class Doorbell {
 public:
  uint32_t ticket() const;
  // Returns at a ring, after `timeout`, or spuriously. A timeout of zero or less returns at once.
  void wait(uint32_t ticket, std::chrono::microseconds timeout);
  void ring();

 private:
  // The two form a store-then-load pair on both sides (Dekker): ring() adds to rings_, then loads sleeping_; wait()
  // stores sleeping_, then loads rings_. All four are sequentially consistent, so at least one side sees the other:
  // either the ringer wakes the owner, or the owner does not go to sleep (the kernel compares rings_ once more).
  //
  // Writer: any ringer (fetch_add, seq_cst). Reader: the owner (ticket: acquire; wait: seq_cst) and the kernel. It is
  // the futex word. Wraps; 2^32 rings between ticket() and wait() would be taken for none, which costs one time-out.
  alignas(64) std::atomic<uint32_t> rings_{0};
  // Writer: the owner (seq_cst store). Reader: ringers (seq_cst load).
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace thalweg::base
