#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "queue/lcr_queue.h"

namespace thalweg::propagation {

// Puts the byte stream of frames that batches carry back into a queue, frame by frame. A frame may begin in one batch
// and end in a later one: it grows in the queue's own memory, so nothing else has to hold a frame of a gigabyte. Every
// frame is decoded, checksum included, before the queue's consumers see it. Owner: the receiver's thread, the queue's
// producer.
class FrameAssembler {
 public:
  explicit FrameAssembler(queue::LcrQueue& queue) : queue_(queue) {}

  // Moves as many of `bytes` into the queue as it has room for, waiting up to `timeout` for it once; what remains is
  // what the queue had no room for. corrupt_frame when the bytes are no frames: the stream is then useless. `bytes` are
  // a multiple of 8 long, and so is what remains.
  base::Result<void> feed(std::span<const std::byte>& bytes, std::chrono::microseconds timeout);

  // True between the first and the last byte of a frame.
  bool inside_frame() const { return filled_ > 0; }
  uint64_t lcrs() const { return lcrs_; }    // changes enqueued
  uint64_t bytes() const { return bytes_; }  // of frames enqueued
  // The marker that was enqueued last, once.
  std::optional<lcr::TransactionMark> take_marker() { return std::exchange(marker_, std::nullopt); }
  base::UnixMicros last_commit() const {
    return last_commit_;
  }  // the source's time of the last COMMIT enqueued; 0: none

 private:
  base::Result<void> publish();

  queue::LcrQueue& queue_;
  std::span<std::byte> frame_;  // reserved in the queue while inside a frame
  size_t filled_ = 0;
  uint64_t lcrs_ = 0;
  uint64_t bytes_ = 0;
  base::UnixMicros last_commit_;
  bool begun_ = false;  // the frame before was a BEGIN: a COMMIT now is a marker's
  std::optional<lcr::TransactionMark> marker_;
};

}  // namespace thalweg::propagation
