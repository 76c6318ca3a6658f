#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/doorbell.h"

// The wait-free queue of Wong et al. 2009, section III (figures 5 and 6): a fixed circular buffer with one producer and
// C consumers, each of which sees every item.
//
//   items[0..N-1]   tail: next free slot, written by the producer only
//                   head[i]: consumer i's next item, written by consumer i only
//   empty[i]  <=>  head[i] == tail
//   full      <=>  for some i, head[i] == tail + 1 mod N      (one slot is always unused)
//
// try_enqueue, try_browse and dequeue end in a bounded number of steps; atomic reads and writes only, no
// compare-and-swap. The blocking forms add bounded waits on doorbells.
//
// head and tail are kept as ever-growing 64-bit counts; slot = count mod N. "head[i] == tail + 1 mod N" then reads
// "tail - head[i] == N - 1", and the counts double as statistics. Why it is laid out like this, and why these memory
// orders suffice: docs/decisions/queue.md.

namespace thalweg::queue {

inline constexpr size_t kCacheLineBytes = 64;

// Thread-safe: the producer's methods belong to one thread, those of consumer i to one thread, enqueued() and
// dequeued() to anybody. T is copied into the queue; consumers get a const pointer to the copy in the slot.
template <typename T>
class SpmcQueue {
 public:
  // `slots` is N, at least 2: the queue holds N - 1 items.
  SpmcQueue(size_t slots, size_t consumers)
      : slots_(slots),
        wake_batch_(std::clamp<size_t>((slots - 1) / 4, 1, kWakeBatchMax)),
        items_(std::make_unique<T[]>(slots)),
        consumers_(consumers) {
    assert(slots >= 2 && consumers >= 1);
    for (auto& consumer : consumers_) consumer.bell = &consumer.own_bell;
    producer_.slots_free_until = capacity();
  }
  SpmcQueue(const SpmcQueue&) = delete;
  SpmcQueue& operator=(const SpmcQueue&) = delete;

  size_t capacity() const { return slots_ - 1; }
  size_t consumer_count() const { return consumers_.size(); }

  // --- producer

  // Puts `item` into every logical queue, or returns false when the queue is full. Does not wake anybody before
  // wake_batch items have come together: call flush() when no more items follow right now.
  bool try_enqueue(const T& item) {
    if (full()) return false;
    items_[producer_.slot] = item;
    if (++producer_.slot == slots_) producer_.slot = 0;
    ++producer_.count;
    // The linearization point. Pairs with the acquire load in try_browse: the item is there before the tail says so.
    tail_.store(producer_.count, std::memory_order_release);
    if (++producer_.unannounced >= wake_batch_) flush();
    return true;
  }

  // try_enqueue that waits up to `timeout` for a free slot.
  bool enqueue(const T& item, std::chrono::microseconds timeout) {
    return await_room([&] { return try_enqueue(item); }, timeout);
  }

  // No free slot. Looks at the consumers' heads only when the last look leaves no slot.
  bool full() {
    if (producer_.count < producer_.slots_free_until) [[likely]]
      return false;
    producer_.slots_free_until = slowest_dequeued() + capacity();
    return producer_.count >= producer_.slots_free_until;
  }

  // Items that every consumer has dequeued. Their slots, and what they refer to, belong to the producer again: pairs
  // with the release store in dequeue.
  uint64_t slowest_dequeued() const {
    uint64_t slowest = consumers_[0].head.load(std::memory_order_acquire);
    for (size_t i = 1; i < consumers_.size(); ++i) {
      slowest = std::min(slowest, consumers_[i].head.load(std::memory_order_acquire));
    }
    return slowest;
  }

  // Rings the consumers' doorbells if items came since the last ring.
  void flush() {
    if (producer_.unannounced == 0) return;
    producer_.unannounced = 0;
    for (auto& consumer : consumers_) consumer.bell->ring();
  }

  // The same for one consumer, if items came: does that consumer's `work` first, and rings only where it returns false.
  template <typename Work>
  void work_or_flush(const Work& work) {
    assert(consumers_.size() == 1);
    if (producer_.unannounced == 0) return;
    if (work()) {
      producer_.unannounced = 0;
    } else {
      flush();
    }
  }

  // Repeats `attempt` until it returns true or `timeout` has passed; sleeps in between until a consumer has made room.
  // The sleeps are bounded and grow, so a consumer that makes little room without ringing costs time, not liveness.
  template <typename Attempt>
  bool await_room(Attempt attempt, std::chrono::microseconds timeout) {
    if (attempt()) [[likely]]
      return true;
    if (timeout.count() <= 0) return false;
    flush();  // nobody may sleep on items that they could make room of
    return await(producer_bell_, attempt, timeout, kNapMin, kProducerNapMax);
  }

  // --- consumer i

  // The first item of logical queue i, or nullptr when it is empty. The item stays unchanged until dequeue(i).
  const T* try_browse(size_t i) {
    Consumer& consumer = consumers_[i];
    if (consumer.count == consumer.known_tail) {
      // The linearization point. Pairs with the release store in try_enqueue.
      consumer.known_tail = tail_.load(std::memory_order_acquire);
      if (consumer.count == consumer.known_tail) {
        announce_room(i);  // the producer may wait for a queue that is as empty as this
        return nullptr;
      }
    }
    return &items_[consumer.slot];
  }

  // try_browse that waits up to `timeout` for an item.
  const T* browse(size_t i, std::chrono::microseconds timeout) {
    const T* item = try_browse(i);
    if (item != nullptr || timeout.count() <= 0) return item;
    // The producer's rings are exact (per batch and at flush), so one sleep may take the whole time.
    await(*consumers_[i].bell, [&] { return (item = try_browse(i)) != nullptr; }, timeout, timeout, timeout);
    return item;
  }

  // Removes the item that browse returned. The consumer no longer refers to it.
  void dequeue(size_t i) {
    Consumer& consumer = consumers_[i];
    assert(consumer.count != consumer.known_tail && "dequeue without browse");
    if (++consumer.slot == slots_) consumer.slot = 0;
    ++consumer.count;
    // The linearization point. Pairs with the acquire load in slowest_dequeued: all reads of the item come before.
    consumer.head.store(consumer.count, std::memory_order_release);
    if (++consumer.unannounced >= wake_batch_) announce_room(i);
  }

  // Wakes the producer if items were dequeued since the last ring, unless another consumer's logical queue is
  // full: then it could not go on (figure 6, lines 23-26).
  // Two consumers that each see the other's old head may both stay silent; the producer's naps bound what that costs.
  void announce_room(size_t i) {
    Consumer& consumer = consumers_[i];
    if (consumer.unannounced == 0) return;
    consumer.unannounced = 0;
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    for (size_t j = 0; j < consumers_.size(); ++j) {
      // Only the count is of interest; a value that is newer than `tail` gives a negative length, hence signed.
      const auto length = static_cast<int64_t>(tail - consumers_[j].head.load(std::memory_order_acquire));
      if (j != i && length >= static_cast<int64_t>(capacity())) return;
    }
    producer_bell_.ring();
  }

  // Rings `bell` instead of the consumer's own. Before the first enqueue only.
  void set_doorbell(size_t i, base::Doorbell* bell) {
    assert(bell != nullptr && enqueued() == 0);
    consumers_[i].bell = bell;
  }

  // --- anybody

  uint64_t enqueued() const { return tail_.load(std::memory_order_acquire); }
  uint64_t dequeued(size_t i) const { return consumers_[i].head.load(std::memory_order_acquire); }

 private:
  // Larger batches cost latency when a producer does not flush(), smaller ones cost a system call per sleeper and
  // batch: at 512 that is about 10 ns an item.
  static constexpr size_t kWakeBatchMax = 512;
  static constexpr std::chrono::microseconds kNapMin{100};
  static constexpr std::chrono::microseconds kProducerNapMax{5'000};

  struct alignas(kCacheLineBytes) Producer {
    uint64_t count = 0;             // == tail_, without the atomic
    size_t slot = 0;                // count mod N
    uint64_t slots_free_until = 0;  // count at which the queue is full, as of the last look at the heads
    size_t unannounced = 0;         // items since the last ring
  };

  struct Consumer {
    // Writer: consumer i (release, in dequeue). Readers: the producer (acquire, in slowest_dequeued, pairs with it
    // before it reuses a slot); other consumers and gauges (acquire, the count only).
    alignas(kCacheLineBytes) std::atomic<uint64_t> head{0};
    // Consumer i's own, on its own line: the producer's look at head does not disturb it.
    alignas(kCacheLineBytes) uint64_t count = 0;  // == head, without the atomic
    size_t slot = 0;                              // count mod N
    uint64_t known_tail = 0;                      // tail as of the last look
    size_t unannounced = 0;                       // items dequeued since the last ring
    base::Doorbell* bell = nullptr;
    base::Doorbell own_bell;
  };

  template <typename Attempt>
  static bool await(base::Doorbell& bell, Attempt attempt, std::chrono::microseconds timeout,
                    std::chrono::microseconds nap, std::chrono::microseconds nap_max) {
    using std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    while (true) {
      const uint32_t seen = bell.ticket();
      if (attempt()) return true;
      const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - steady_clock::now());
      if (left.count() <= 0) return false;
      bell.wait(seen, std::min(nap, left));
      nap = std::min(nap * 2, nap_max);
    }
  }

  const size_t slots_;
  const size_t wake_batch_;  // N / 4, 1 to kWakeBatchMax: both sides ring once per as many items
  const std::unique_ptr<T[]> items_;
  std::vector<Consumer> consumers_;
  Producer producer_;
  // Writer: the producer (release, in try_enqueue). Readers: consumers (acquire, in try_browse); gauges (acquire).
  alignas(kCacheLineBytes) std::atomic<uint64_t> tail_{0};
  base::Doorbell producer_bell_;
};

}  // namespace thalweg::queue
