#pragma once

#include <optional>
#include <span>
#include <vector>

#include "propagation/messages.h"

namespace thalweg::propagation {

// Cuts a byte stream into messages. Its memory is fixed: twice the longest message that is allowed. Owner: one thread.
//
// Use:  n = read into room();  added(n);  while (auto message = next()) ...
// A batch's payload lies in the reader's memory and is valid until the next room().
class MessageReader {
 public:
  // `message_bytes_max`: kMessageBytesMax, or kControlBytesMax where batches are not expected.
  explicit MessageReader(size_t message_bytes_max);

  // Where the next bytes go; never empty after next() returned nothing.
  std::span<std::byte> room();
  void added(size_t bytes);
  // The next whole message, nothing until more bytes come, or link_protocol_violation, after which the stream is
  // useless.
  base::Result<std::optional<Message>> next();
  // True when no byte waits behind what next() returned.
  bool empty() const { return begin_ == end_; }
  // Forgets everything: a new connection begins.
  void reset();

 private:
  size_t message_bytes_max_;
  std::vector<std::byte> memory_;
  size_t begin_ = 0;  // of what is not parsed
  size_t end_ = 0;
};

}  // namespace thalweg::propagation
