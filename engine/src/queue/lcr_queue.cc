#include "queue/lcr_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "queue/frame_arena.h"
#include "queue/spmc_queue.h"
#include "telemetry/agent.h"

namespace thalweg::queue {

namespace {

// Content of a slot.
struct FrameReference {
  const std::byte* frame = nullptr;
  size_t bytes = 0;
};

// A consumer's own counts, on a cache line of their own.
struct alignas(kCacheLineBytes) ConsumerBytes {
  telemetry::Counter dequeued;  // writer: consumer i, reader: gauges
  uint64_t since_announced = 0;
  size_t browsed_bytes = 0;
};

}  // namespace

struct LcrQueue::State {
  explicit State(const LcrQueueOptions& options)
      : queue(options.slots, options.consumers),
        consumers(options.consumers),
        announce_bytes(options.memory_bytes / 16),
        arena(options.memory_bytes),
        arena_ends(options.slots) {}

  // Gives the memory of frames that every consumer has passed back to the arena.
  void recycle() {
    const uint64_t passed = queue.slowest_dequeued();
    if (passed == recycled) return;
    arena.recycle(passed, arena_ends[(passed - 1) % arena_ends.size()]);
    recycled = passed;
  }

  void rewind_if_empty() {
    if (!reserved.empty()) return;
    recycle();
    if (arena.bytes_in_use() == 0) arena.rewind();
  }

  bool try_reserve(size_t frame_bytes) {
    reserved = {};
    if (queue.full()) return false;
    reserved = arena.reserve(frame_bytes);
    if (reserved.empty()) {
      recycle();
      reserved = arena.reserve(frame_bytes);
    }
    return !reserved.empty();
  }

  SpmcQueue<FrameReference> queue;
  std::vector<ConsumerBytes> consumers;
  const uint64_t announce_bytes;  // a consumer that gave back so many bytes wakes the producer

  // The producer's, away from what consumers read.
  alignas(kCacheLineBytes) FrameArena arena;
  std::vector<uint64_t> arena_ends;  // by slot: FrameArena::end() after the slot's frame
  size_t slot = 0;
  uint64_t sequence = 0;
  uint64_t recycled = 0;  // frames whose memory was given back
  std::span<std::byte> reserved;
  std::function<bool()> producer_work;
  telemetry::Counter enqueued_lcrs, enqueued_bytes;  // writer: the producer, reader: gauges
};

LcrQueue::LcrQueue(const LcrQueueOptions& options) : state_(std::make_unique<State>(options)) {}
LcrQueue::~LcrQueue() = default;

std::span<std::byte> LcrQueue::reserve(size_t frame_bytes, std::chrono::microseconds timeout) {
  State& state = *state_;
  state.queue.await_room([&] { return state.try_reserve(frame_bytes); }, timeout);
  return state.reserved;
}

void LcrQueue::enqueue() {
  State& state = *state_;
  assert(!state.reserved.empty() && "enqueue without reserve");
  state.arena.commit(state.sequence++);
  state.arena_ends[state.slot] = state.arena.end();
  if (++state.slot == state.arena_ends.size()) state.slot = 0;
  state.enqueued_bytes.add(state.reserved.size());
  if (lcr::is_change(lcr::kind_of(state.reserved.data()))) state.enqueued_lcrs.add();
  const bool enqueued = state.queue.try_enqueue({.frame = state.reserved.data(), .bytes = state.reserved.size()});
  assert(enqueued);  // reserve() saw a free slot, and only the producer takes slots
  static_cast<void>(enqueued);
  state.reserved = {};
}

void LcrQueue::flush() {
  if (state_->producer_work) {
    state_->queue.work_or_flush(state_->producer_work);
  } else {
    state_->queue.flush();
  }
  state_->rewind_if_empty();
}

const std::byte* LcrQueue::browse(size_t consumer, std::chrono::microseconds timeout) {
  const FrameReference* item = state_->queue.browse(consumer, timeout);
  if (item == nullptr) return nullptr;
  state_->consumers[consumer].browsed_bytes = item->bytes;
  return item->frame;
}

void LcrQueue::dequeue(size_t consumer) {
  State& state = *state_;
  ConsumerBytes& own = state.consumers[consumer];
  own.dequeued.add(own.browsed_bytes);
  own.since_announced += own.browsed_bytes;
  state.queue.dequeue(consumer);
  if (own.since_announced >= state.announce_bytes) {  // few but large frames: the producer may wait for their memory
    own.since_announced = 0;
    state.queue.announce_room(consumer);
  }
}

void LcrQueue::set_doorbell(size_t consumer, base::Doorbell* bell) { state_->queue.set_doorbell(consumer, bell); }

void LcrQueue::set_producer_work(std::function<bool()> work) {
  assert(!work || consumers() == 1);
  state_->producer_work = std::move(work);
}

LcrQueueGauges LcrQueue::gauges() const {
  const State& state = *state_;
  // Consumers' side first: each is then at most what the producer's side says a moment later.
  const uint64_t dequeued = state.queue.slowest_dequeued();
  uint64_t dequeued_bytes = state.consumers[0].dequeued.get();
  for (const auto& consumer : state.consumers) dequeued_bytes = std::min(dequeued_bytes, consumer.dequeued.get());
  const uint64_t enqueued = state.queue.enqueued();
  const uint64_t enqueued_bytes = std::max(state.enqueued_bytes.get(), dequeued_bytes);
  return {.enqueued = enqueued,
          .enqueued_lcrs = state.enqueued_lcrs.get(),
          .enqueued_bytes = enqueued_bytes,
          .depth = enqueued - dequeued,
          .depth_bytes = enqueued_bytes - dequeued_bytes,
          .capacity = state.queue.capacity(),
          .memory_bytes = state.arena.memory_bytes()};
}

ConsumerLag LcrQueue::lag(size_t consumer) const {
  const State& state = *state_;
  // The consumer's side first, as in gauges().
  const uint64_t dequeued = state.queue.dequeued(consumer);
  const uint64_t dequeued_bytes = state.consumers[consumer].dequeued.get();
  return {.frames = state.queue.enqueued() - dequeued,
          .bytes = std::max(state.enqueued_bytes.get(), dequeued_bytes) - dequeued_bytes};
}

size_t LcrQueue::consumers() const { return state_->queue.consumer_count(); }

}  // namespace thalweg::queue
