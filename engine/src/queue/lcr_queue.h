#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/doorbell.h"
#include "lcr/frame.h"

// The staging queue between a capture and its consumers: SpmcQueue of frame references over memory that the producer
// owns and recycles once the slowest consumer has passed it.

namespace thalweg::queue {

struct LcrQueueOptions {
  size_t slots = 16'384;                   // frames it holds at most; one slot stays unused
  size_t memory_bytes = 64 * 1024 * 1024;  // arena for frames; a frame above a quarter of it gets memory of its own
  size_t consumers = 1;
};

// Each is written by one owner; any thread may read them at any time.
struct LcrQueueGauges {
  uint64_t enqueued;       // frames ever enqueued
  uint64_t enqueued_lcrs;  // those of them that are changes (lcr::is_change)
  uint64_t enqueued_bytes;
  uint64_t depth;        // frames that the slowest consumer has not dequeued
  uint64_t depth_bytes;  // their bytes: frames in the arena and in memory of their own
  uint64_t capacity;     // slots - 1
  uint64_t memory_bytes;
};

// How far one consumer is behind the producer.
struct ConsumerLag {
  uint64_t frames;
  uint64_t bytes;
};

// Thread-safe: the producer's methods belong to one thread, those of consumer i to one thread; any thread may call
// gauges().
class LcrQueue {
 public:
  explicit LcrQueue(const LcrQueueOptions& options);
  ~LcrQueue();
  LcrQueue(const LcrQueue&) = delete;
  LcrQueue& operator=(const LcrQueue&) = delete;

  // --- producer
  // Memory for the next frame, `frame_bytes` long, or empty when the queue is full until `timeout` has passed.
  // At most one reservation is open; it is published by enqueue or given up by the next reserve.
  std::span<std::byte> reserve(size_t frame_bytes, std::chrono::microseconds timeout);
  // Publishes the reserved frame to every consumer. Wakes sleepers at the latest at the next flush().
  void enqueue();
  // Rings consumers that sleep. The producer calls it when it has nothing more to enqueue right now, and it rings by
  // itself every so many LCRs: batch wake-ups.
  void flush();

  // --- consumer i
  // The first frame of its logical queue, or nullptr when it stays empty until `timeout` has passed. The frame stays
  // valid and unchanged until dequeue.
  const std::byte* browse(size_t consumer, std::chrono::microseconds timeout);
  // Removes the first frame; its memory may be reused.
  void dequeue(size_t consumer);
  // Sets a doorbell that is rung, instead of the queue's own, when something arrives for this consumer: for an agent
  // that waits on several sources. Before the first enqueue only.
  void set_doorbell(size_t consumer, base::Doorbell* bell);
  // For a queue with one consumer: flush() does the consumer's `work`, on the producer's thread, before it rings. True:
  // everything has been taken, or is left to a thread that will take it; the consumer's agent sleeps on. `work` and
  // agent take turns (base/baton.h). Empty: the producer does none. Call it only while the producer is quiet.
  void set_producer_work(std::function<bool()> work);

  LcrQueueGauges gauges() const;
  ConsumerLag lag(size_t consumer) const;
  size_t consumers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg::queue
