#pragma once

#include <chrono>
#include <cstddef>

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

 private:
  LcrQueue& queue_;
  const size_t consumer_;
};

}  // namespace thalweg::queue
