#pragma once

#include <atomic>
#include <thread>

#include "apply/shared_state.h"
#include "pg/connection.h"

// Makes the low watermark durable and publishes it to capture, on a thread of its own: a slow fsync at the destination
// holds nobody up.

namespace thalweg::apply {

// An agent. Its connection also holds the stream's advisory lock; when it is lost, the apply ends.
class Recorder {
 public:
  Recorder(SharedState& shared, pg::Connection connection);
  ~Recorder();
  void join();  // records once more, and joins; the other agents must have ended
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  void run();
  void work();
  base::Result<void> record(uint64_t low_watermark);

  SharedState& shared_;
  pg::Connection connection_;
  // Writer: the thread, at its end (release). Reader: anybody (acquire).
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace thalweg::apply
