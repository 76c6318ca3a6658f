#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

// The memory behind an LcrQueue's frames.

namespace thalweg::queue {

// A circular arena for ordinary frames plus memory of its own for each oversize frame, under one budget. Frames are
// taken and given back in the order of the queue. Owner: the producer.
class FrameArena {
 public:
  explicit FrameArena(size_t memory_bytes);

  // Memory for the frame with sequence `sequence` (0, 1, 2, ... as enqueued), 8-aligned; empty when the budget is
  // exceeded. Not taken before commit(); a second reserve() replaces the first. With nothing in use it always succeeds,
  // whatever the size: a frame that is larger than the whole budget must pass, alone.
  std::span<std::byte> reserve(size_t frame_bytes);
  // Takes what was reserved.
  void commit(uint64_t sequence);
  // Gives back every frame below `sequence_end`; `arena_end` is what end() returned after the last of them was
  // committed.
  void recycle(uint64_t sequence_end, uint64_t arena_end);
  // The next frame starts at the arena's beginning, where nothing may be in use: what has been used before is in the
  // processor's caches, and what has not been costs a page fault.
  void rewind();

  uint64_t end() const { return taken_; }
  uint64_t bytes_in_use() const { return taken_ - free_ + own_bytes_; }
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct OwnMemory {
    uint64_t sequence;
    size_t bytes;
    std::unique_ptr<std::byte[]> memory;
  };

  std::span<std::byte> reserve_own(size_t frame_bytes);

  const size_t memory_bytes_;    // a multiple of 8
  const size_t oversize_bytes_;  // frames above it get memory of their own
  const std::unique_ptr<std::byte[]> arena_;
  // Offsets that grow until rewind(); place in the arena = offset mod memory_bytes_. [free_, taken_) is in use.
  uint64_t free_ = 0;
  uint64_t taken_ = 0;
  uint64_t reserved_end_ = 0;  // taken_ after commit()
  OwnMemory reserved_own_{};   // memory set while an oversize frame is reserved
  uint64_t own_bytes_ = 0;
  std::deque<OwnMemory> own_;  // committed, oldest first
};

}  // namespace thalweg::queue
