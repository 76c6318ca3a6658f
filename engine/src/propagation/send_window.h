#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "base/error.h"

namespace thalweg::propagation {

// Batches from the moment they are packed until the receiver has acknowledged them, as whole messages in one circular
// buffer of fixed size: what a WAN link holds in flight whatever its round-trip time (Wong et al. 2009, VI.E). Messages
// do not wrap; neighbours are sent by one write.
//
// Two threads: the packer opens and commits, the link sends, rewinds and acknowledges. Thread-safe between these two
// and for used(): one mutex, taken per batch; bytes that are committed do not change until they are acknowledged, so
// the link reads them without it.
class SendWindow {
 public:
  // `message_bytes_max`: what open() reserves. At least four of them fit.
  SendWindow(size_t window_bytes, size_t message_bytes_max);

  // --- packer
  // Room for one message, or empty when the window stays full until `timeout` has passed.
  std::span<std::byte> open(std::chrono::milliseconds timeout);
  // The sequence of the message that open() gave room for.
  uint64_t open_sequence() const { return last_sequence_packer_ + 1; }
  // Publishes the first `bytes` of what open() gave.
  void commit(size_t bytes);
  // True when the link has sent all that was committed: nothing would be gained by waiting.
  bool all_sent() const;
  // Waits until every committed batch is acknowledged, or `timeout` has passed. True: all are.
  bool await_empty(std::chrono::milliseconds timeout);
  // Makes open() and await_empty() return at once from now on.
  void interrupt();

  // --- link
  // The next bytes to send: at most `bytes_max`, from one message or several that lie behind each other. Empty: none.
  std::span<const std::byte> unsent(size_t bytes_max) const;
  // Whether the last message is sent whole: something else may be sent now.
  bool at_boundary() const { return offset_ == 0; }
  // Bytes until the end of the message that is being sent.
  size_t message_rest() const;
  void sent(size_t bytes);
  // Sends from `sequence` on again; everything before it is acknowledged. How many batches go twice.
  // link_protocol_violation when the window does not hold it.
  base::Result<uint64_t> resume_at(uint64_t sequence);
  // Forgets every batch up to `sequence`. link_protocol_violation when it was not sent yet.
  base::Result<void> acknowledge(uint64_t sequence);
  uint64_t first_sequence() const;  // the first that can be sent still

  // --- anybody
  size_t used() const;
  size_t capacity() const { return capacity_; }

 private:
  struct Entry {
    size_t begin;
    size_t bytes;
  };

  bool find_room();
  void release_to(uint64_t sequence);

  const size_t message_bytes_max_;
  const size_t capacity_;
  const std::unique_ptr<std::byte[]> memory_;  // as it comes: pages that no message needed yet take no memory
  mutable std::mutex mutex_;
  std::condition_variable room_;       // notified when batches were acknowledged
  std::deque<Entry> entries_;          // guarded: by sequence from first_
  uint64_t first_ = 1;                 // guarded: sequence of entries_.front(), or the next one
  uint64_t next_to_send_ = 1;          // guarded: written by the link only
  size_t used_ = 0;                    // guarded
  bool interrupted_ = false;           // guarded
  size_t head_ = 0;                    // the packer's: where the next message goes
  uint64_t last_sequence_packer_ = 0;  // the packer's
  size_t offset_ = 0;                  // the link's: bytes of next_to_send_ that were sent
};

}  // namespace thalweg::propagation
