#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

// Baseline for SpmcQueue: the same semantics (bounded, every consumer sees every item, browse then dequeue) with a
// mutex and condition variables. For benchmarks only.

namespace thalweg::queue {

// Notifies on the transitions of Wong et al. 2009, figure 6, only: a consumer whose logical queue was empty, the
// producer when the queue was full. Notifies after unlocking.
template <typename T>
class MutexQueue {
 public:
  MutexQueue(size_t slots, size_t consumers) : items_(slots), heads_(consumers, 0) {}

  void enqueue(const T& item) {
    bool was_empty = false;
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [&] { return tail_ - slowest() < items_.size() - 1; });
      items_[tail_ % items_.size()] = item;
      for (const uint64_t head : heads_) was_empty |= head == tail_;
      ++tail_;
    }
    if (was_empty) not_empty_.notify_all();
  }

  const T* browse(size_t i) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return heads_[i] != tail_; });
    return &items_[heads_[i] % items_.size()];
  }

  void dequeue(size_t i) {
    bool was_full = false;
    {
      const std::lock_guard lock(mutex_);
      was_full = tail_ - slowest() == items_.size() - 1;
      ++heads_[i];
      was_full = was_full && tail_ - slowest() < items_.size() - 1;
    }
    if (was_full) not_full_.notify_one();
  }

 private:
  uint64_t slowest() const {
    uint64_t slowest = heads_[0];
    for (const uint64_t head : heads_) slowest = head < slowest ? head : slowest;
    return slowest;
  }

  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::vector<T> items_;
  std::vector<uint64_t> heads_;
  uint64_t tail_ = 0;
};

}  // namespace thalweg::queue
