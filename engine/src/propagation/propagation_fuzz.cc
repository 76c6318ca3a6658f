// Feeds foreign bytes to what the receiver parses: messages cut out of a stream, batches, decompression, frames into a
// queue. Parsing is total and memory-safe, and what was accepted as frames comes out of the queue as valid frames.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "lcr/bytes.h"
#include "lcr/frame.h"
#include "propagation/batch_codec.h"
#include "propagation/frame_assembler.h"
#include "propagation/message_reader.h"

namespace thalweg::propagation {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Frames above this are not fed: the queue would make room for two gigabytes that never come.
constexpr size_t kFrameBytesMax = size_t{1} << 20;

void drain(queue::LcrQueue& queue) {
  while (const std::byte* frame = queue.browse(0, std::chrono::microseconds(0))) {
    const size_t length = lcr::frame_length({frame, sizeof(uint32_t)}).value();
    require(lcr::FrameView::decode({frame, length}).has_value());
    queue.dequeue(0);
  }
}

void take(const Batch& batch, BatchDecompressor& decompressor, FrameAssembler& assembler, queue::LcrQueue& queue) {
  const auto raw = decompressor.decompress(batch);
  if (!raw) return;
  require(raw->size() == batch.raw_length);
  std::span<const std::byte> rest = *raw;
  const auto length = lcr::frame_length(rest);
  if (length && *length > kFrameBytesMax) return;
  for (int rounds = 0; !rest.empty() && rounds < 4096; ++rounds) {
    if (!assembler.feed(rest, std::chrono::microseconds(0))) return;
    drain(queue);
  }
}

void read_stream(std::span<const std::byte> bytes, size_t piece) {
  queue::LcrQueue queue({.slots = 64, .memory_bytes = 1 << 16, .consumers = 1});
  FrameAssembler assembler(queue);
  BatchDecompressor decompressor;
  MessageReader reader(kMessageBytesMax);
  while (!bytes.empty()) {
    const auto room = reader.room();
    require(!room.empty());
    const size_t taken = std::min({room.size(), bytes.size(), piece});
    std::ranges::copy(bytes.first(taken), room.begin());
    bytes = bytes.subspan(taken);
    reader.added(taken);
    for (;;) {
      const auto message = reader.next();
      if (!message) return;
      if (!*message) break;
      if (const auto* batch = std::get_if<Batch>(&**message)) take(*batch, decompressor, assembler, queue);
    }
  }
}

// A mutated message nearly always fails on its checksum: makes lengths and checksums right and looks deeper.
void mend(std::vector<std::byte>& bytes) {
  for (size_t at = 0; at + kMessageHeaderBytes <= bytes.size();) {
    const auto rest = std::span(bytes).subspan(at);
    auto length = message_length(rest);
    if (!length || *length > rest.size()) {
      lcr::ByteWriter(rest).integer(static_cast<uint32_t>(rest.size()));
      length = rest.size();
    }
    const uint32_t checksum = message_checksum(rest.first(*length));
    lcr::ByteWriter(rest.subspan(4)).integer(checksum);
    at += *length;
  }
}

}  // namespace
}  // namespace thalweg::propagation

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thalweg::propagation;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  read_stream(bytes, 1 + size / 3);
  mend(bytes);
  read_stream(bytes, bytes.size() + 1);
  return 0;
}
