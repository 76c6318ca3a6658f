#include "queue/frame_arena.h"

#include <cassert>
#include <utility>

#include "lcr/frame.h"

namespace thalweg::queue {

namespace {

constexpr size_t kAlignment = lcr::kFrameAlignment;
static_assert(kAlignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "new[] aligns frames");

constexpr size_t round_up(size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

}  // namespace

FrameArena::FrameArena(size_t memory_bytes)
    : memory_bytes_(round_up(memory_bytes)),
      oversize_bytes_(memory_bytes_ / 4),
      arena_(std::make_unique_for_overwrite<std::byte[]>(memory_bytes_)) {
  assert(memory_bytes > 0);
}

std::span<std::byte> FrameArena::reserve(size_t frame_bytes) {
  assert(frame_bytes > 0);
  const size_t bytes = round_up(frame_bytes);
  if (bytes > oversize_bytes_) return reserve_own(frame_bytes);
  reserved_own_ = {};
  const size_t place = taken_ % memory_bytes_;
  const size_t to_edge = memory_bytes_ - place;
  const uint64_t skipped = bytes > to_edge ? to_edge : 0;  // a frame does not wrap: it starts over at 0
  const uint64_t end = taken_ + skipped + bytes;
  if (end - free_ + own_bytes_ > memory_bytes_) return {};
  reserved_end_ = end;
  return {arena_.get() + (skipped > 0 ? 0 : place), frame_bytes};
}

std::span<std::byte> FrameArena::reserve_own(size_t frame_bytes) {
  if (bytes_in_use() > 0 && bytes_in_use() + frame_bytes > memory_bytes_) return {};
  reserved_end_ = taken_;
  if (reserved_own_.bytes != frame_bytes) {
    reserved_own_ = {
        .sequence = 0, .bytes = frame_bytes, .memory = std::make_unique_for_overwrite<std::byte[]>(frame_bytes)};
  }
  return {reserved_own_.memory.get(), frame_bytes};
}

void FrameArena::commit(uint64_t sequence) {
  taken_ = reserved_end_;
  if (reserved_own_.memory != nullptr) {
    own_bytes_ += reserved_own_.bytes;
    reserved_own_.sequence = sequence;
    own_.push_back(std::exchange(reserved_own_, {}));
  }
}

void FrameArena::recycle(uint64_t sequence_end, uint64_t arena_end) {
  assert(arena_end >= free_ && arena_end <= taken_);
  free_ = arena_end;
  while (!own_.empty() && own_.front().sequence < sequence_end) {
    own_bytes_ -= own_.front().bytes;
    own_.pop_front();
  }
}

void FrameArena::rewind() {
  assert(bytes_in_use() == 0);
  taken_ = free_ = 0;
}

}  // namespace thalweg::queue
