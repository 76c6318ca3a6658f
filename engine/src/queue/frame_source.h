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
  // Has the producer call `helper` where it would wake the agent (LcrQueue::set_helper), and ring `bell` where that
  // returns false: for an agent whose work others may do in its place. From then on browse() must not wait. False: the
  // source has nobody who could. Before the first frame; without a helper: no more, while the producer is quiet.
  virtual bool share(base::Doorbell* /*bell*/, std::function<bool()> /*helper*/) { return false; }
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
  bool share(base::Doorbell* bell, std::function<bool()> helper) override {
    if (queue_.consumers() != 1) return false;
    if (helper) queue_.set_doorbell(consumer_, bell);
    queue_.set_helper(std::move(helper));
    return true;
  }

 private:
  LcrQueue& queue_;
  const size_t consumer_;
};

}  // namespace thalweg::queue
