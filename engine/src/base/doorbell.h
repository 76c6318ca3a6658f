#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

// A wake-up flag for one waiting agent (seed 000, section III.B: bounded waits with wake-up flags).

namespace thalweg::base {

// Thread-safe: one owner waits, any thread rings. Waits are bounded, so a missed ring costs time, never liveness.
//
// Use:   uint32_t seen = bell.ticket();  if (nothing to do) bell.wait(seen, timeout);
// A ring after ticket() makes the wait return at once. ring() costs one relaxed load while nobody sleeps.
class Doorbell {
 public:
  uint32_t ticket() const;
  void wait(uint32_t ticket, std::chrono::microseconds timeout);
  void ring();

 private:
  // Writer: any ringer (fetch_add, release). Reader: the owner (acquire). Futex word.
  alignas(64) std::atomic<uint32_t> rings_{0};
  // Writer: the owner. Reader: ringers. Sequentially consistent with rings_ (store-then-load on both sides).
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace thalweg::base
