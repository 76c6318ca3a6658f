#include "apply/frame_blocks.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace thalweg::apply {

namespace {

constexpr size_t kFreeBlocksMax = 256;
constexpr std::align_val_t kBlockAlignment{64};

void destroy(Block* block) {
  ::operator delete(block->data, kBlockAlignment);
  delete block;
}

}  // namespace

BlockPool::~BlockPool() {
  for (Block* block : free_) destroy(block);
}

Block* BlockPool::take(size_t bytes_min) {
  const size_t capacity = std::max(bytes_min, kBlockBytes);
  held_bytes_.fetch_add(capacity, std::memory_order_relaxed);
  if (capacity == kBlockBytes) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Block* block = free_.back();
      free_.pop_back();
      block->used = 0;
      block->holders.store(1, std::memory_order_relaxed);
      return block;
    }
  }
  return new Block{static_cast<std::byte*>(::operator new(capacity, kBlockAlignment)), capacity, 0, 1};
}

void BlockPool::drop(Block* block) {
  // Acquire and release: whoever drops last sees what all holders did with the bytes.
  if (block->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const size_t capacity = block->capacity;
  {
    const std::lock_guard lock(mutex_);
    if (capacity == kBlockBytes && free_.size() < kFreeBlocksMax) {
      free_.push_back(block);
      block = nullptr;
    }
  }
  if (block != nullptr) destroy(block);
  held_bytes_.fetch_sub(capacity, std::memory_order_relaxed);
  released_->ring();
}

void FrameBuffer::append(BlockPool& pool, Block*& fill, std::span<const std::byte> frame) {
  assert(pool_ == nullptr || pool_ == &pool);
  pool_ = &pool;
  if (fill == nullptr || fill->capacity - fill->used < frame.size()) {
    if (fill != nullptr) pool.drop(fill);
    fill = pool.take(frame.size());
  }
  std::byte* const to = fill->data + fill->used;
  std::memcpy(to, frame.data(), frame.size());
  fill->used += frame.size();
  bytes_ += frame.size();
  if (!segments_.empty() && segments_.back().end == to && segments_.back().block == fill) {
    segments_.back().end = to + frame.size();
    return;
  }
  fill->holders.fetch_add(1, std::memory_order_relaxed);
  held_bytes_ += fill->capacity;
  segments_.push_back({.block = fill, .begin = to, .end = to + frame.size()});
}

void FrameBuffer::clear() {
  for (const Segment& segment : segments_) pool_->drop(segment.block);
  segments_.clear();
  bytes_ = held_bytes_ = 0;
}

}  // namespace thalweg::apply
