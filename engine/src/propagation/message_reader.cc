#include "propagation/message_reader.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

namespace thalweg::propagation {

MessageReader::MessageReader(size_t message_bytes_max)
    : message_bytes_max_(message_bytes_max), memory_(2 * message_bytes_max) {}

std::span<std::byte> MessageReader::room() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (memory_.size() - begin_ < message_bytes_max_) {  // the message that has begun might not fit behind it
    std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(memory_).subspan(end_);
}

void MessageReader::added(size_t bytes) {
  assert(bytes <= memory_.size() - end_);
  end_ += bytes;
}

base::Result<std::optional<Message>> MessageReader::next() {
  const auto rest = std::span(memory_).subspan(begin_, end_ - begin_);
  if (rest.size() < kMessageHeaderBytes) return std::nullopt;
  THALWEG_ASSIGN(const size_t length, message_length(rest));
  if (length > message_bytes_max_) {
    return base::fail(base::ErrorCode::link_protocol_violation,
                      fmt::format("a message of {} bytes where at most {} are expected", length, message_bytes_max_));
  }
  if (rest.size() < length) return std::nullopt;
  begin_ += length;
  THALWEG_ASSIGN(auto message, parse_message(rest.first(length)));
  return std::optional<Message>(std::move(message));
}

void MessageReader::reset() { begin_ = end_ = 0; }

}  // namespace thalweg::propagation
