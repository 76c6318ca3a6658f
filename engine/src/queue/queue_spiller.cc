#include "queue/queue_spiller.h"

#include <utility>

namespace thalweg::queue {

using telemetry::Activity;

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
  time_.enter(Activity::idle);
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t seen = bell_.ticket();
    bool moved = false;
    bool spilling = false;
    for (Spillable* const consumer : consumers_) {
      if (consumer->is_spilling() && time_.current() != Activity::disk) time_.enter(Activity::disk);
      moved = consumer->move() || moved;
      spilling = spilling || consumer->is_spilling();
    }
    if (moved) continue;
    if (time_.current() != Activity::idle) time_.enter(Activity::idle);
    if (!stop_.load(std::memory_order_acquire)) bell_.wait(seen, spilling ? kNapWhileSpilling : kNap);
  }
}

}  // namespace thalweg::queue
