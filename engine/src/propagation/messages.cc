#include "propagation/messages.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>

#include "lcr/bytes.h"

namespace thalweg::propagation {

namespace {

constexpr size_t kTypeOffset = 8;
constexpr size_t kRefusalTextMax = 1024;

std::unexpected<base::Error> violation(std::string message) {
  return base::fail(base::ErrorCode::link_protocol_violation, std::move(message));
}

// Collects a body, then puts the header before it.
class Composer {
 public:
  explicit Composer(MessageType type) : type_(type), bytes_(kMessageHeaderBytes) {}

  template <std::integral Integer>
  Composer& integer(Integer value) {
    std::array<std::byte, sizeof(Integer)> swapped;
    lcr::ByteWriter(swapped).integer(value);
    bytes_.insert(bytes_.end(), swapped.begin(), swapped.end());
    return *this;
  }
  template <std::unsigned_integral Length>
  Composer& text(std::string_view from, size_t length_max) {
    const auto kept = std::as_bytes(std::span(from.substr(0, length_max)));
    integer(static_cast<Length>(kept.size()));
    bytes_.insert(bytes_.end(), kept.begin(), kept.end());
    return *this;
  }
  Composer& raw(std::string_view from) {
    const auto bytes = std::as_bytes(std::span(from));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::vector<std::byte> finish() {
    assert(bytes_.size() <= kControlBytesMax);
    bytes_[kTypeOffset] = static_cast<std::byte>(type_);
    lcr::ByteWriter(bytes_).integer(static_cast<uint32_t>(bytes_.size()));
    const uint32_t checksum = message_checksum(bytes_);
    lcr::ByteWriter(std::span(bytes_).subspan(4)).integer(checksum);
    return std::move(bytes_);
  }

 private:
  MessageType type_;
  std::vector<std::byte> bytes_;
};

std::string short_text(lcr::ByteReader& reader) { return std::string(reader.text(reader.integer<uint8_t>())); }

// Later versions may append fields to HELLO, WELCOME and REFUSE: what follows the known ones is ignored there.
base::Result<Message> parse_hello(lcr::ByteReader reader) {
  if (reader.text(kMagic.size()) != kMagic) return violation("the peer is not a Thalweg sender: wrong magic");
  Hello hello;
  hello.versions.lowest = reader.integer<uint16_t>();
  hello.versions.highest = reader.integer<uint16_t>();
  if (reader.failed() || hello.versions.lowest == 0 || hello.versions.lowest > hello.versions.highest) {
    return violation("a HELLO with an impossible range of versions");
  }
  hello.compressions = reader.integer<uint32_t>();
  hello.sender_session = reader.integer<uint64_t>();
  hello.receiver_session = reader.integer<uint64_t>();
  hello.first_sequence = reader.integer<uint64_t>();
  hello.window_bytes = reader.integer<uint64_t>();
  hello.sender_engine = short_text(reader);
  hello.receiver_engine = short_text(reader);
  hello.stream_id = short_text(reader);
  if (reader.remaining() >= sizeof hello.timeline) hello.timeline = reader.integer<uint32_t>();
  if (reader.failed() || hello.sender_session == 0 || hello.first_sequence == 0) return violation("a malformed HELLO");
  return hello;
}

base::Result<Message> parse_welcome(lcr::ByteReader reader) {
  Welcome welcome;
  welcome.version = reader.integer<uint16_t>();
  welcome.compressions = reader.integer<uint32_t>();
  welcome.receiver_session = reader.integer<uint64_t>();
  welcome.next_sequence = reader.integer<uint64_t>();
  welcome.durable = {reader.integer<uint64_t>()};
  welcome.clock = {reader.integer<int64_t>()};
  if (reader.failed() || welcome.receiver_session == 0 || welcome.next_sequence == 0) {
    return violation("a malformed WELCOME");
  }
  return welcome;
}

base::Result<Message> parse_refuse(lcr::ByteReader reader) {
  Refuse refuse;
  refuse.versions.lowest = reader.integer<uint16_t>();
  refuse.versions.highest = reader.integer<uint16_t>();
  refuse.reason = static_cast<RefusalReason>(reader.integer<uint16_t>());
  const auto length = reader.integer<uint16_t>();
  if (length > kRefusalTextMax) return violation("a REFUSE with a text that is too long");
  refuse.text = std::string(reader.text(length));
  if (reader.failed()) return violation("a malformed REFUSE");
  return refuse;
}

base::Result<Message> parse_batch(std::span<const std::byte> message) {
  const uint8_t compression = std::to_integer<uint8_t>(message[9]);
  lcr::ByteReader reader(message.subspan(12));
  Batch batch;
  batch.raw_length = reader.integer<uint32_t>();
  batch.sequence = reader.integer<uint64_t>();
  batch.sent = {reader.integer<int64_t>()};
  batch.payload = reader.take(reader.remaining());
  if (compression > static_cast<uint8_t>(Compression::zstd)) {
    return violation(fmt::format("a BATCH with unknown compression {}", compression));
  }
  batch.compression = static_cast<Compression>(compression);
  if (batch.raw_length == 0 || batch.raw_length % 8 != 0 || batch.raw_length > kBatchRawBytesMax) {
    return violation(fmt::format("a BATCH of {} bytes of frames", batch.raw_length));
  }
  const bool fits = batch.compression == Compression::none ? batch.payload.size() == batch.raw_length
                                                           : batch.payload.size() < batch.raw_length;
  if (!fits || batch.payload.empty() || batch.sequence == 0) {
    return violation(fmt::format("BATCH {} with {} bytes of payload for {} bytes of frames", batch.sequence,
                                 batch.payload.size(), batch.raw_length));
  }
  return batch;
}

base::Result<Message> parse_ack(lcr::ByteReader reader) {
  Ack ack;
  ack.received = reader.integer<uint64_t>();
  ack.durable = {reader.integer<uint64_t>()};
  ack.clock = {reader.integer<int64_t>()};
  ack.free_bytes = reader.integer<uint64_t>();
  const auto paused = reader.integer<uint8_t>();
  if (reader.failed() || reader.remaining() != 0 || paused > 1) return violation("a malformed ACK");
  ack.paused = paused == 1;
  return ack;
}

template <typename Stamped>
base::Result<Message> parse_stamped(lcr::ByteReader reader, std::string_view name) {
  Stamped message;
  message.stamp = reader.integer<uint64_t>();
  if (reader.failed() || reader.remaining() != 0) return violation(fmt::format("a malformed {}", name));
  return message;
}

}  // namespace

base::Result<size_t> message_length(std::span<const std::byte> bytes) {
  assert(bytes.size() >= kMessageHeaderBytes);
  const auto length = lcr::load_network<uint32_t>(bytes.data());
  const auto type = std::to_integer<uint8_t>(bytes[kTypeOffset]);
  const bool is_batch = type == static_cast<uint8_t>(MessageType::batch);
  const size_t shortest = is_batch ? kBatchHeaderBytes : kMessageHeaderBytes;
  const size_t longest = is_batch ? kMessageBytesMax : kControlBytesMax;
  if (type == 0 || type > static_cast<uint8_t>(MessageType::goodbye) || length < shortest || length > longest) {
    return violation(fmt::format("no message of type {} is {} bytes long", type, length));
  }
  return length;
}

base::Result<Message> parse_message(std::span<const std::byte> message) {
  if (lcr::load_network<uint32_t>(message.data() + 4) != message_checksum(message)) {
    return violation("a message whose checksum does not match its bytes");
  }
  const auto type = static_cast<MessageType>(message[kTypeOffset]);
  if (message[10] != std::byte{0} || message[11] != std::byte{0})
    return violation("a header that is not zero in bytes 10, 11");
  if (type == MessageType::batch) return parse_batch(message);
  if (std::ranges::any_of(message.subspan(9, 7), [](std::byte byte) { return byte != std::byte{0}; })) {
    return violation("a header with fields that only a BATCH has");
  }
  const lcr::ByteReader body(message.subspan(kMessageHeaderBytes));
  switch (type) {
    case MessageType::hello:
      return parse_hello(body);
    case MessageType::welcome:
      return parse_welcome(body);
    case MessageType::refuse:
      return parse_refuse(body);
    case MessageType::ack:
      return parse_ack(body);
    case MessageType::heartbeat:
      return parse_stamped<Heartbeat>(body, "HEARTBEAT");
    case MessageType::echo:
      return parse_stamped<Echo>(body, "ECHO");
    case MessageType::goodbye:
      if (body.remaining() != 0) return violation("a malformed GOODBYE");
      return Goodbye{};
    case MessageType::batch:
      break;
  }
  return violation("a message of unknown type");
}

std::vector<std::byte> make_message(const Hello& hello) {
  return Composer(MessageType::hello)
      .raw(kMagic)
      .integer(hello.versions.lowest)
      .integer(hello.versions.highest)
      .integer(hello.compressions)
      .integer(hello.sender_session)
      .integer(hello.receiver_session)
      .integer(hello.first_sequence)
      .integer(hello.window_bytes)
      .text<uint8_t>(hello.sender_engine, 255)
      .text<uint8_t>(hello.receiver_engine, 255)
      .text<uint8_t>(hello.stream_id, 255)
      .integer(hello.timeline)
      .finish();
}

std::vector<std::byte> make_message(const Welcome& welcome) {
  return Composer(MessageType::welcome)
      .integer(welcome.version)
      .integer(welcome.compressions)
      .integer(welcome.receiver_session)
      .integer(welcome.next_sequence)
      .integer(welcome.durable.value)
      .integer(welcome.clock.value)
      .finish();
}

std::vector<std::byte> make_message(const Refuse& refuse) {
  return Composer(MessageType::refuse)
      .integer(refuse.versions.lowest)
      .integer(refuse.versions.highest)
      .integer(static_cast<uint16_t>(refuse.reason))
      .text<uint16_t>(refuse.text, kRefusalTextMax)
      .finish();
}

std::vector<std::byte> make_message(const Ack& ack) {
  return Composer(MessageType::ack)
      .integer(ack.received)
      .integer(ack.durable.value)
      .integer(ack.clock.value)
      .integer(ack.free_bytes)
      .integer(static_cast<uint8_t>(ack.paused ? 1 : 0))
      .finish();
}

std::vector<std::byte> make_message(const Heartbeat& heartbeat) {
  return Composer(MessageType::heartbeat).integer(heartbeat.stamp).finish();
}

std::vector<std::byte> make_message(const Echo& echo) {
  return Composer(MessageType::echo).integer(echo.stamp).finish();
}

std::vector<std::byte> make_message(const Goodbye&) { return Composer(MessageType::goodbye).finish(); }

void seal_batch(std::span<std::byte> message, Compression compression, uint32_t raw_length, uint64_t sequence,
                base::UnixMicros sent) {
  assert(message.size() > kBatchHeaderBytes && message.size() <= kMessageBytesMax);
  lcr::ByteWriter writer(message);
  writer.integer(static_cast<uint32_t>(message.size()));
  writer.integer(uint32_t{0});
  writer.integer(static_cast<uint8_t>(MessageType::batch));
  writer.integer(static_cast<uint8_t>(compression));
  writer.integer(uint16_t{0});
  writer.integer(raw_length);
  writer.integer(sequence);
  writer.integer(sent.value);
  lcr::ByteWriter(message.subspan(4)).integer(message_checksum(message));
}

uint16_t common_version(ProtocolVersions ours, ProtocolVersions theirs) {
  const uint16_t highest = std::min(ours.highest, theirs.highest);
  return highest >= std::max(ours.lowest, theirs.lowest) ? highest : 0;
}

uint32_t message_checksum(std::span<const std::byte> message) {
  const auto covered = message.subspan(8);
  return static_cast<uint32_t>(XXH3_64bits(covered.data(), covered.size()));
}

}  // namespace thalweg::propagation
