#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "apply/shared_state.h"
#include "apply/spsc_ring.h"
#include "apply/transaction.h"

// Complete transactions on their way from the reader to the coordinator, in commit order.

namespace thalweg::apply {

// Thread-safe: push, announce, full, fail_with and close belong to the holder of the reader's baton, the rest to the
// holder of the coordinator's, unless noted otherwise.
class TransactionQueue {
 public:
  static constexpr size_t kTransactionsMax = 16'384;

  explicit TransactionQueue(SharedState& shared) : shared_(shared), ring_(kTransactionsMax) {}
  ~TransactionQueue() {
    while (Transaction** item = ring_.peek()) {
      delete *item;
      ring_.pop();
    }
  }

  // False when full; the transaction stays the caller's. The caller announces it, or all that come together.
  bool push(std::unique_ptr<Transaction>& transaction) {
    const uint64_t lcrs = transaction->lcrs;
    if (!ring_.push(transaction.get())) return false;
    transaction.release();
    pushed_lcrs_.store(pushed_lcrs_.load(std::memory_order_relaxed) + lcrs, std::memory_order_seq_cst);
    is_announced_ = false;
    return true;
  }
  void announce() {
    if (is_announced_) return;
    is_announced_ = true;
    if (next_is_news_.load(std::memory_order_seq_cst)) shared_.tell_coordinator();
  }
  bool full() const { return ring_.full(); }
  // The reader failed: what it has pushed is applied, then apply ends with this. Before close().
  void fail_with(base::Error error) { failure_ = std::move(error); }
  // The reader has ended; nothing more comes.
  void close() {
    closed_.store(true, std::memory_order_release);
    shared_.coordinator_bell.ring();
  }

  // Before the coordinator sleeps: whether a new transaction is news, so that the reader does the coordinator's work or
  // wakes it.
  void set_next_is_news(bool is_news) { next_is_news_.store(is_news, std::memory_order_seq_cst); }
  Transaction* peek() {
    Transaction** const item = ring_.peek();
    return item == nullptr ? nullptr : *item;
  }
  std::unique_ptr<Transaction> pop() {
    std::unique_ptr<Transaction> transaction(*ring_.peek());
    ring_.pop();
    popped_lcrs_ += transaction->lcrs;
    if (reader_waits_.load(std::memory_order_seq_cst)) shared_.reader_bell.ring();
    return transaction;
  }
  // LCRs of the transactions that wait.
  uint64_t waiting_lcrs() const { return pushed_lcrs_.load(std::memory_order_seq_cst) - popped_lcrs_; }
  uint64_t pushed_lcrs() const { return pushed_lcrs_.load(std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // Valid once the queue is closed.
  const std::optional<base::Error>& failure() const { return failure_; }
  // For the reader, around a wait for room.
  void set_reader_waits(bool waits) { reader_waits_.store(waits, std::memory_order_seq_cst); }

 private:
  SharedState& shared_;
  SpscRing<Transaction*> ring_;
  // Writer: the holder of the reader's baton. Reader: the coordinator's. Sequentially consistent with next_is_news_:
  // either the coordinator sees the new transaction before it sleeps, or the reader sees that it is news.
  std::atomic<uint64_t> pushed_lcrs_{0};
  // Writer: the holder of the coordinator's baton. Reader: the reader's.
  std::atomic<bool> next_is_news_{true};
  bool is_announced_ = true;  // belongs to the holder of the reader's baton
  // Writer: the holder of the reader's baton. Reader: the coordinator's.
  std::atomic<bool> reader_waits_{false};
  // Release in close pairs with acquire in closed: failure_ is written.
  std::atomic<bool> closed_{false};
  std::optional<base::Error> failure_;
  uint64_t popped_lcrs_ = 0;
};

}  // namespace thalweg::apply
