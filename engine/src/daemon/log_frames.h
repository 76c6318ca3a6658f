#pragma once

#include <span>
#include <thread>

#include "lcr/frame.h"
#include "queue/frame_source.h"
#include "spill/durable_log.h"

namespace thalweg::daemon {

// Frames that an earlier session left in a log, for an agent of its own. Owner: that agent.
class LogFrames final : public queue::FrameSource {
 public:
  explicit LogFrames(spill::DurableLog& log) : log_(log) {}

  base::Result<const std::byte*> browse(std::chrono::microseconds timeout) override {
    if (run_.empty()) {
      THALWEG_ASSIGN(run_, log_.next_run());
    }
    if (!run_.empty()) return run_.data();
    std::this_thread::sleep_for(timeout);  // nothing more comes: the agent waits for its end
    return nullptr;
  }
  void dequeue() override { run_ = run_.subspan(lcr::FrameView::trusted(run_.data()).header().length); }
  void release() override {}

 private:
  spill::DurableLog& log_;
  std::span<const std::byte> run_;
};

}  // namespace thalweg::daemon
