#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <vector>

// A bounded ring between two agents of apply. Wait-free.

namespace thalweg::apply {

// Thread-safe: push belongs to one thread, pop to one other. `Item` is a plain pointer or small value.
template <typename Item>
class SpscRing {
 public:
  explicit SpscRing(size_t capacity) : items_(capacity + 1) { assert(capacity > 0); }

  bool push(Item item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    const size_t next = tail + 1 == items_.size() ? 0 : tail + 1;
    if (next == head_.load(std::memory_order_acquire)) return false;
    items_[tail] = item;
    tail_.store(next, std::memory_order_release);
    return true;
  }
  // The pusher's: push would fail now.
  bool full() const {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    return (tail + 1 == items_.size() ? 0 : tail + 1) == head_.load(std::memory_order_acquire);
  }
  // The first item, or nullptr.
  Item* peek() {
    const size_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr : &items_[head];
  }
  void pop() {
    const size_t head = head_.load(std::memory_order_relaxed);
    head_.store(head + 1 == items_.size() ? 0 : head + 1, std::memory_order_release);
  }
  bool empty() const { return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire); }

 private:
  std::vector<Item> items_;
  // Writer: the popper. Reader: the pusher. Release in pop pairs with acquire in push: the slot is free.
  alignas(64) std::atomic<size_t> head_{0};
  // Writer: the pusher. Reader: the popper. Release in push pairs with acquire in peek: the item is written.
  alignas(64) std::atomic<size_t> tail_{0};
};

}  // namespace thalweg::apply
