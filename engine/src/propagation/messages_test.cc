// The golden files in engine/test/golden/propagation/ are the protocol, versions 1 and 2, whose messages are the same:
// one message each, in hexadecimal. Written messages must equal them byte for byte. A difference means that the
// protocol changed: that needs a new version. A file for a new message is written by running this test once with
// THALWEG_WRITE_GOLDEN=1; existing ones are never overwritten.

#include "propagation/messages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "propagation/batch_codec.h"
#include "propagation/frame_assembler.h"
#include "propagation/message_reader.h"
#include "propagation/send_window.h"
#include "propagation/test_frames.h"
#include "support/engine_directory.h"

namespace thalweg::propagation {
namespace {

using base::ErrorCode;
using Bytes = std::vector<std::byte>;

Bytes sample_raw() {
  Bytes raw;
  for (uint64_t i = 7; i < 11; ++i) {
    const auto frame = make_numbered_frame(i);
    raw.insert(raw.end(), frame.begin(), frame.end());
  }
  return raw;
}

Bytes make_batch(uint64_t sequence, const Bytes& raw, Compression compression = Compression::none) {
  Bytes message(kBatchHeaderBytes + raw.size());
  size_t packed = 0;
  if (compression != Compression::none) {
    packed = BatchCompressor(compression, 1).compress(raw, std::span(message).subspan(kBatchHeaderBytes));
    message.resize(kBatchHeaderBytes + packed);
  } else {
    std::ranges::copy(raw, message.begin() + kBatchHeaderBytes);
  }
  seal_batch(message, compression, static_cast<uint32_t>(raw.size()), sequence, {1'700'000'000'123'456});
  return message;
}

std::vector<std::pair<std::string, Bytes>> samples() {
  return {
      {"hello", make_message(Hello{.versions = {1, 2},
                                   .compressions = 5,
                                   .sender_session = 0x1122334455667788,
                                   .receiver_session = 0x99AABBCCDDEEFF00,
                                   .first_sequence = 17,
                                   .window_bytes = 64 << 20,
                                   .sender_engine = "a",
                                   .receiver_engine = "b",
                                   .stream_id = "stream01",
                                   .timeline = 3})},
      {"welcome", make_message(Welcome{.version = 1,
                                       .compressions = 5,
                                       .receiver_session = 0x99AABBCCDDEEFF00,
                                       .next_sequence = 18,
                                       .durable = {0x16B374D848},
                                       .clock = {1'700'000'000'123'456}})},
      {"refuse",
       make_message(Refuse{.versions = {1, 1}, .reason = RefusalReason::unknown_stream, .text = "no stream"})},
      {"batch", make_batch(18, sample_raw())},
      {"ack", make_message(Ack{.received = 18,
                               .durable = {0x16B374D848},
                               .clock = {1'700'000'000'123'456},
                               .free_bytes = 4096,
                               .paused = true})},
      {"heartbeat", make_message(Heartbeat{.stamp = 0x0102030405060708})},
      {"echo", make_message(Echo{.stamp = 0x0102030405060708})},
      {"goodbye", make_message(Goodbye{})},
  };
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    out += kDigits[std::to_integer<size_t>(bytes[i]) >> 4];
    out += kDigits[std::to_integer<size_t>(bytes[i]) & 15];
    out += i % 16 == 15 || i + 1 == bytes.size() ? '\n' : ' ';
  }
  return out;
}

void write_seed(const std::string& name, const Bytes& bytes) {
  const auto path = std::filesystem::path(test::engine_directory()) / "test/corpus/propagation_fuzz" / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

TEST(Messages, GoldenFilesAreStillWritten) {
  const auto directory = std::filesystem::path(test::engine_directory()) / "test/golden/propagation";
  const bool writing = std::getenv("THALWEG_WRITE_GOLDEN") != nullptr;
  for (const auto& [name, bytes] : samples()) {
    const auto path = directory / (name + ".hex");
    if (writing && !std::filesystem::exists(path)) {
      std::ofstream(path) << to_hex(bytes);
      write_seed(name, bytes);
    }
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), to_hex(bytes)) << name;
  }
  if (writing) {
    write_seed("batch_lz4", make_batch(1, sample_raw(), Compression::lz4));
    write_seed("batch_zstd", make_batch(1, sample_raw(), Compression::zstd));
  }
}

TEST(Messages, EveryDamagedByteIsNoticed) {
  for (const auto& [name, whole] : samples()) {
    for (size_t at = 0; at < whole.size(); ++at) {
      Bytes damaged = whole;
      damaged[at] ^= std::byte{0x40};
      MessageReader reader(kMessageBytesMax);
      std::ranges::copy(damaged, reader.room().begin());
      reader.added(damaged.size());
      const auto message = reader.next();
      // A longer length waits for more bytes; everything else fails.
      EXPECT_TRUE(!message || !*message) << name << " at " << at;
    }
  }
}

TEST(Messages, ALengthBeyondTheTypeIsRefusedBeforeAnythingIsAllocated) {
  Bytes header(kMessageHeaderBytes);
  header[8] = std::byte{4};
  header[0] = std::byte{0x7F};
  EXPECT_EQ(message_length(header).error().code, ErrorCode::link_protocol_violation);
  header[0] = std::byte{0};
  header[1] = std::byte{1};  // 64 KiB: a batch may, an ACK may not
  EXPECT_TRUE(message_length(header));
  header[8] = std::byte{5};
  EXPECT_FALSE(message_length(header));
  header[8] = std::byte{9};
  EXPECT_FALSE(message_length(header));
}

TEST(Messages, HelloOfALaterVersionMayBeLonger) {
  auto bytes = samples()[0].second;
  bytes.insert(bytes.end(), 12, std::byte{7});
  bytes[3] = static_cast<std::byte>(bytes.size());
  const uint32_t checksum = message_checksum(bytes);
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(4 + i)] = static_cast<std::byte>(checksum >> (24 - 8 * i));
  const auto message = parse_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<Hello>(*message).stream_id, "stream01");
}

TEST(Messages, HelloOfAnEarlierEngineTellsNoTimeline) {
  auto bytes = samples()[0].second;
  EXPECT_EQ(std::get<Hello>(parse_message(bytes).value()).timeline, 3U);
  bytes.resize(bytes.size() - 4);
  bytes[3] = static_cast<std::byte>(bytes.size());
  const uint32_t checksum = message_checksum(bytes);
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(4 + i)] = static_cast<std::byte>(checksum >> (24 - 8 * i));
  const auto message = parse_message(bytes);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(std::get<Hello>(*message).timeline, 0U);
  EXPECT_EQ(std::get<Hello>(*message).stream_id, "stream01");
}

TEST(Messages, TheHighestCommonVersionIsTaken) {
  EXPECT_EQ(common_version({1, 2}, {2, 3}), 2);
  EXPECT_EQ(common_version({1, 1}, {1, 2}), 1);
  EXPECT_EQ(common_version({1, 1}, {2, 2}), 0);
}

TEST(BatchCodec, BombsAndShortDataAreRefused) {
  const Bytes raw(size_t{64} << 10);
  for (const auto compression : {Compression::lz4, Compression::zstd}) {
    Bytes packed(raw.size());
    packed.resize(BatchCompressor(compression, 1).compress(raw, packed));
    ASSERT_GT(packed.size(), 0U);
    BatchDecompressor decompressor;
    Batch batch{.compression = compression, .raw_length = 64 << 10, .sequence = 1, .sent = {}, .payload = packed};
    EXPECT_TRUE(decompressor.decompress(batch));
    batch.raw_length = (64 << 10) - 8;  // it gives more than it says
    EXPECT_FALSE(decompressor.decompress(batch));
    batch.raw_length = (64 << 10) + 8;  // less
    EXPECT_FALSE(decompressor.decompress(batch));
  }
}

TEST(FrameAssembler, FramesMayBeCutAnywhere) {
  const Bytes raw = sample_raw();
  for (size_t piece = 8; piece <= raw.size(); piece += 8) {
    queue::LcrQueue queue({.slots = 16, .memory_bytes = 1 << 16, .consumers = 1});
    FrameAssembler assembler(queue);
    for (size_t at = 0; at < raw.size(); at += piece) {
      auto bytes = std::span(raw).subspan(at, std::min(piece, raw.size() - at));
      std::span<const std::byte> rest = bytes;
      ASSERT_TRUE(assembler.feed(rest, {}));
      ASSERT_TRUE(rest.empty());
    }
    EXPECT_FALSE(assembler.inside_frame());
    for (uint64_t i = 7; i < 11; ++i) {
      const std::byte* frame = queue.browse(0, {});
      ASSERT_NE(frame, nullptr);
      const auto expected = make_numbered_frame(i);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), frame));
      queue.dequeue(0);
    }
  }
}

TEST(FrameAssembler, ACorruptFrameNeverReachesTheQueue) {
  Bytes raw = make_numbered_frame(7);
  raw[60] ^= std::byte{1};
  queue::LcrQueue queue({.slots = 16, .memory_bytes = 1 << 16, .consumers = 1});
  FrameAssembler assembler(queue);
  std::span<const std::byte> rest = raw;
  EXPECT_EQ(assembler.feed(rest, {}).error().code, ErrorCode::corrupt_frame);
  EXPECT_EQ(queue.browse(0, {}), nullptr);
}

void put(SendWindow& window, size_t bytes) {
  ASSERT_FALSE(window.open({}).empty());
  window.commit(bytes);
}

TEST(SendWindow, IsBoundedAndGoesOnWhereTheReceiverIs) {
  SendWindow window(4'000, 1'000);
  for (int i = 0; i < 4; ++i) put(window, 1'000);
  EXPECT_TRUE(window.open({}).empty());
  EXPECT_EQ(window.used(), 4'000U);
  EXPECT_EQ(window.unsent(10'000).size(), 4'000U);  // neighbours by one write
  window.sent(2'500);
  EXPECT_FALSE(window.at_boundary());
  EXPECT_EQ(window.message_rest(), 500U);
  EXPECT_FALSE(window.acknowledge(3));  // not sent yet
  EXPECT_TRUE(window.acknowledge(1));
  put(window, 1'000);  // at the start again
  EXPECT_EQ(window.resume_at(2).value(), 2U);
  EXPECT_EQ(window.unsent(10'000).size(), 3'000U);  // the fifth lies elsewhere
  EXPECT_FALSE(window.resume_at(1));                // acknowledged: gone
  EXPECT_EQ(window.resume_at(6).value(), 0U);
  EXPECT_EQ(window.used(), 0U);
  EXPECT_TRUE(window.all_sent());
  EXPECT_FALSE(window.resume_at(7));  // never made
}

}  // namespace
}  // namespace thalweg::propagation
