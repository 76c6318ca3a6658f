#include "propagation/send_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace thalweg::propagation {

SendWindow::SendWindow(size_t window_bytes, size_t message_bytes_max)
    : message_bytes_max_(message_bytes_max),
      capacity_(std::max(window_bytes, 4 * message_bytes_max)),
      memory_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

// Where a message of the largest size fits: behind the last one, or at the start when the edge is too near.
bool SendWindow::find_room() {
  if (entries_.empty()) {
    head_ = 0;  // an idle link stays in the same few pages
    return true;
  }
  const size_t tail = entries_.front().begin;
  if (head_ <= tail) return tail - head_ >= message_bytes_max_;  // it has wrapped
  if (capacity_ - head_ >= message_bytes_max_) return true;
  if (tail < message_bytes_max_) return false;
  head_ = 0;
  return true;
}

std::span<std::byte> SendWindow::open(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!room_.wait_for(lock, timeout, [&] { return interrupted_ || find_room(); })) return {};
  if (interrupted_ && !find_room()) return {};
  return std::span(memory_.get(), capacity_).subspan(head_, message_bytes_max_);
}

void SendWindow::commit(size_t bytes) {
  assert(bytes > 0 && bytes <= message_bytes_max_);
  const std::lock_guard lock(mutex_);
  entries_.push_back({.begin = head_, .bytes = bytes});
  head_ += bytes;
  used_ += bytes;
  ++last_sequence_packer_;
}

bool SendWindow::all_sent() const {
  const std::lock_guard lock(mutex_);
  return next_to_send_ == first_ + entries_.size();
}

bool SendWindow::await_empty(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  room_.wait_for(lock, timeout, [&] { return interrupted_ || entries_.empty(); });
  return entries_.empty();
}

void SendWindow::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  room_.notify_all();
}

std::span<const std::byte> SendWindow::unsent(size_t bytes_max) const {
  const std::lock_guard lock(mutex_);
  size_t index = next_to_send_ - first_;
  if (index == entries_.size()) return {};
  const size_t begin = entries_[index].begin + offset_;
  size_t end = entries_[index].begin + entries_[index].bytes;
  while (end - begin < bytes_max && ++index < entries_.size() && entries_[index].begin == end) {
    end += entries_[index].bytes;
  }
  return std::span(memory_.get(), capacity_).subspan(begin, std::min(end - begin, bytes_max));
}

size_t SendWindow::message_rest() const {
  const std::lock_guard lock(mutex_);
  const size_t index = next_to_send_ - first_;
  return index == entries_.size() ? 0 : entries_[index].bytes - offset_;
}

void SendWindow::sent(size_t bytes) {
  const std::lock_guard lock(mutex_);
  offset_ += bytes;
  while (offset_ > 0) {
    const size_t message = entries_[next_to_send_ - first_].bytes;
    if (offset_ < message) break;
    offset_ -= message;
    ++next_to_send_;
  }
}

void SendWindow::release_to(uint64_t sequence) {
  while (first_ <= sequence) {
    used_ -= entries_.front().bytes;
    entries_.pop_front();
    ++first_;
  }
}

base::Result<uint64_t> SendWindow::resume_at(uint64_t sequence) {
  uint64_t again = 0;
  {
    const std::lock_guard lock(mutex_);
    if (sequence < first_ || sequence > first_ + entries_.size()) {
      return base::fail(base::ErrorCode::link_protocol_violation,
                        fmt::format("the receiver wants batch {}, the sender has {} to {}", sequence, first_,
                                    first_ + entries_.size()));
    }
    again = next_to_send_ + (offset_ > 0 ? 1 : 0) - std::min(sequence, next_to_send_ + (offset_ > 0 ? 1 : 0));
    release_to(sequence - 1);
    next_to_send_ = sequence;
    offset_ = 0;
  }
  room_.notify_all();
  return again;
}

base::Result<void> SendWindow::acknowledge(uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    if (sequence >= next_to_send_) {
      return base::fail(base::ErrorCode::link_protocol_violation,
                        fmt::format("the receiver acknowledges batch {}, which was not sent", sequence));
    }
    if (sequence < first_) return {};
    release_to(sequence);
  }
  room_.notify_all();
  return {};
}

uint64_t SendWindow::first_sequence() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

size_t SendWindow::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace thalweg::propagation
