#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "propagation/link.h"

// The messages between a sender and a receiver: docs/formats/propagation.md. Internal to propagation/.
//
//   offset size  field             (integers are in network byte order)
//        0    4  length            whole message, header included
//        4    4  checksum          low 32 bits of XXH3-64 over bytes [8, length)
//        8    1  type              MessageType
//        9    1  compression       BATCH: Compression of the payload; else 0
//       10    2  zero
//       12    4  raw_length        BATCH: bytes of payload before compression; else 0
//       16    -  body

namespace thalweg::propagation {

inline constexpr size_t kMessageHeaderBytes = 16;
inline constexpr size_t kBatchHeaderBytes = kMessageHeaderBytes + 16;  // header, sequence, time
inline constexpr size_t kBatchRawBytesMax = size_t{1} << 20;           // before compression
inline constexpr size_t kControlBytesMax = 4096;                       // any message but a batch
inline constexpr size_t kMessageBytesMax = kBatchHeaderBytes + kBatchRawBytesMax;
inline constexpr std::string_view kMagic{"THWPROP\n", 8};

enum class MessageType : uint8_t {
  hello = 1,      // sender: who it is; the first message of a connection
  welcome = 2,    // receiver: the answer that opens the session
  refuse = 3,     // receiver: the answer that ends the connection
  batch = 4,      // sender: frames
  ack = 5,        // receiver: how far it is
  heartbeat = 6,  // sender: alive; asks for the echo
  echo = 7,       // receiver: a heartbeat's stamp
  goodbye = 8,    // either: it ends on purpose
};

struct Hello {
  ProtocolVersions versions;
  uint32_t compressions = 0;      // bit n: Compression n may be used in batches
  uint64_t sender_session = 0;    // never 0; new for every pipeline of the sender
  uint64_t receiver_session = 0;  // that this sender session has met before; 0 where none
  uint64_t first_sequence = 0;    // the first batch that the sender can send still
  uint64_t window_bytes = 0;
  std::string sender_engine;
  std::string receiver_engine;  // whom the sender wants to talk to
  std::string stream_id;
  uint32_t timeline = 0;  // of the source, on which the LCRs' positions lie; 0: not told, as by earlier engines
};

struct Welcome {
  uint16_t version = 0;
  uint32_t compressions = 0;      // those of HELLO that the receiver accepts
  uint64_t receiver_session = 0;  // another than HELLO's (which was not 0): the receiver has lost its queue
  uint64_t next_sequence = 0;     // the batch that it wants next
  base::Lsn durable;
  base::UnixMicros clock;
};

enum class RefusalReason : uint16_t {
  version = 1,          // no version in common
  unknown_stream = 2,   // no receiver runs for the stream
  wrong_engine = 3,     // the sender, or whom it wants to talk to, is another engine
  session_changes = 4,  // the sender's session is new: the receiver starts over first
};

struct Refuse {
  ProtocolVersions versions;
  RefusalReason reason{};
  std::string text;  // at most 1024 bytes
};

struct Batch {
  Compression compression = Compression::none;
  uint32_t raw_length = 0;  // a multiple of 8, at least 8, at most kBatchRawBytesMax
  uint64_t sequence = 0;    // from 1
  base::UnixMicros sent;    // when the batch was closed, by the sender's clock
  std::span<const std::byte> payload;
};

struct Ack {
  uint64_t received = 0;  // every batch up to it is in the receiver's memory
  base::Lsn durable;
  base::UnixMicros clock;
  uint64_t free_bytes = 0;  // room in the receiver's queue
  bool paused = false;      // its queue is full: it does not read
};

struct Heartbeat {
  uint64_t stamp = 0;  // the sender's monotonic clock, nanoseconds
};

struct Echo {
  uint64_t stamp = 0;
};

struct Goodbye {};

using Message = std::variant<Hello, Welcome, Refuse, Batch, Ack, Heartbeat, Echo, Goodbye>;

// The length of the message that starts `bytes` (at least a header of them), from its header alone; or
// link_protocol_violation when no message is so long or there is no such type.
base::Result<size_t> message_length(std::span<const std::byte> bytes);

// The message that is all of `message`. Checks everything but what the frames in a batch's payload are; a batch's
// payload points into `message`.
base::Result<Message> parse_message(std::span<const std::byte> message);

// Whole messages with their checksums. Texts are at most 255 bytes, a refusal's 1024 (cut).
std::vector<std::byte> make_message(const Hello& hello);
std::vector<std::byte> make_message(const Welcome& welcome);
std::vector<std::byte> make_message(const Refuse& refuse);
std::vector<std::byte> make_message(const Ack& ack);
std::vector<std::byte> make_message(const Heartbeat& heartbeat);
std::vector<std::byte> make_message(const Echo& echo);
std::vector<std::byte> make_message(const Goodbye& goodbye);
// Writes the header of a batch whose payload the caller has put behind it: `message` is header and payload.
void seal_batch(std::span<std::byte> message, Compression compression, uint32_t raw_length, uint64_t sequence,
                base::UnixMicros sent);

// The highest version that both know, or 0.
uint16_t common_version(ProtocolVersions ours, ProtocolVersions theirs);

// Low 32 bits of XXH3-64 over the message from byte 8 to its end.
uint32_t message_checksum(std::span<const std::byte> message);

}  // namespace thalweg::propagation
