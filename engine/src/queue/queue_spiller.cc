#include "queue/queue_spiller.h"

#include <utility>

namespace thalweg::queue {

namespace {

// A queue that fills within it makes the producer wait for the rest of it, once, when spilling begins.
constexpr std::chrono::milliseconds kNap{20};
constexpr std::chrono::milliseconds kNapWhileSpilling{5};

}  // namespace

QueueSpiller::QueueSpiller(std::vector<Spillable*> consumers) : consumers_(std::move(consumers)) {
  thread_ = std::thread([this] { run(); });
}

QueueSpiller::~QueueSpiller() {
  stop_.store(true, std::memory_order_release);
  bell_.ring();
  thread_.join();
}

void QueueSpiller::run() {
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t seen = bell_.ticket();
    bool moved = false;
    bool spilling = false;
    for (Spillable* const consumer : consumers_) {
      moved = consumer->move() || moved;
      spilling = spilling || consumer->is_spilling();
    }
    if (moved) continue;
    if (!stop_.load(std::memory_order_acquire)) bell_.wait(seen, spilling ? kNapWhileSpilling : kNap);
  }
}

}  // namespace thalweg::queue
