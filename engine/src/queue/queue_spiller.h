#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/doorbell.h"
#include "queue/spillable.h"

namespace thalweg::queue {

// The agent that spills for the consumers of one queue, or of several. It looks at each every 20 ms, and works on
// those that spill as long as they have something to move.
// Owner: whoever makes it; the consumers outlive it.
class QueueSpiller {
 public:
  explicit QueueSpiller(std::vector<Spillable*> consumers);
  ~QueueSpiller();  // stops and joins
  QueueSpiller(const QueueSpiller&) = delete;
  QueueSpiller& operator=(const QueueSpiller&) = delete;

 private:
  void run();

  const std::vector<Spillable*> consumers_;
  base::Doorbell bell_;
  std::atomic<bool> stop_{false};  // Writer: the destructor (release). Reader: the agent (acquire).
  std::thread thread_;
};

}  // namespace thalweg::queue
