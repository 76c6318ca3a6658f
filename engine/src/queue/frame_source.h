#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/doorbell.h"
#include "base/error.h"
#include "queue/lcr_queue.h"

namespace thalweg::queue {

// Where the agent of one consumer takes its LCRs from: a queue, or a queue with a backlog on disk before it.
// Owner: that agent.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // The first frame, or nullptr when there is none until `timeout` has passed. Valid and unchanged until dequeue. Fails
  // with what reading from disk fails with: corrupt_frame, file_error.
  virtual base::Result<const std::byte*> browse(std::chrono::microseconds timeout) = 0;
  virtual void dequeue() = 0;
  // The browsed frame is not being looked at any more; browse gives it again. For an agent that waits for something
  // else before it takes the frame.
  virtual void release() = 0;
  // Has the producer do the agent's `work` where it would wake the agent (LcrQueue::set_producer_work), and ring `bell`
  // where that returns false: for an agent whose work other threads may do (base/baton.h). From then on browse() must
  // not wait. False: the source has no producer that could. Before the first frame only.
  virtual bool let_producer_work(base::Doorbell& /*bell*/, std::function<bool()> /*work*/) { return false; }
  // The end of it. Call it only while the producer is quiet.
  virtual void end_producer_work() {}
};

// A consumer of a queue as it is.
class QueueFrames final : public FrameSource {
 public:
  QueueFrames(LcrQueue& queue, size_t consumer) : queue_(queue), consumer_(consumer) {}
  base::Result<const std::byte*> browse(std::chrono::microseconds timeout) override {
    return queue_.browse(consumer_, timeout);
  }
  void dequeue() override { queue_.dequeue(consumer_); }
  void release() override {}
  bool let_producer_work(base::Doorbell& bell, std::function<bool()> work) override {
    if (queue_.consumers() != 1) return false;
    queue_.set_doorbell(consumer_, &bell);
    queue_.set_producer_work(std::move(work));
    return true;
  }
  void end_producer_work() override { queue_.set_producer_work({}); }

 private:
  LcrQueue& queue_;
  const size_t consumer_;
};

}  // namespace thalweg::queue
