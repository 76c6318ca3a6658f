#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/doorbell.h"

// Where transactions' frames lie between the queue and the destination.

namespace thalweg::apply {

inline constexpr size_t kBlockBytes = 64 * 1024;  // a frame that does not fit gets a block of its own

struct Block {
  std::byte* data;
  size_t capacity;
  size_t used;                    // the reader only
  std::atomic<uint32_t> holders;  // buffers with a segment in it, and the reader while it fills it
};

// Memory for blocks, bounded by what its user checks against held_bytes().
// Thread-safe: a mutex around the list of free blocks, taken once per 64 KiB.
class BlockPool {
 public:
  // `released`: rung when memory comes back.
  explicit BlockPool(base::Doorbell* released) : released_(released) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  Block* take(size_t bytes_min);  // one holder: the caller
  void drop(Block* block);        // gives one hold up
  size_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  base::Doorbell* const released_;
  std::mutex mutex_;
  std::vector<Block*> free_;
  // Writers: whoever takes or drops. Readers: anybody; a stale value costs one wait.
  std::atomic<size_t> held_bytes_{0};
};

// The frames of one transaction, in order, in segments. Owner: one agent at a time.
class FrameBuffer {
 public:
  FrameBuffer() = default;
  FrameBuffer(FrameBuffer&& other) noexcept { swap(other); }
  FrameBuffer& operator=(FrameBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FrameBuffer() { clear(); }
  void swap(FrameBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    std::swap(held_bytes_, other.held_bytes_);
    segments_.swap(other.segments_);
  }

  // Copies `frame` behind the others, into `fill`, which is replaced by a fresh block when it is full.
  void append(BlockPool& pool, Block*& fill, std::span<const std::byte> frame);
  void clear();
  bool empty() const { return segments_.empty(); }
  size_t bytes() const { return bytes_; }
  // Memory that the pool gets back with clear() only: whole blocks, shared ones included.
  size_t held_bytes() const { return held_bytes_; }

  struct Segment {
    Block* block;
    std::byte* begin;
    std::byte* end;
  };
  std::span<const Segment> segments() const { return segments_; }

 private:
  BlockPool* pool_ = nullptr;
  size_t bytes_ = 0;
  size_t held_bytes_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace thalweg::apply
