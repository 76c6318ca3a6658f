// Feeds foreign bytes to the segment reader, as a file and as the payload of a block whose header and checksum are
// right: reading is total and memory-safe, and takes no more memory than was read.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lcr/frame.h"
#include "spill/log_mark.h"
#include "spill/segment_reader.h"

namespace thalweg::spill {
namespace {

void drain(std::span<const std::byte> bytes) {
  base::File file(::memfd_create("segment", MFD_CLOEXEC));
  if (!file.write_all(bytes)) std::abort();
  ::lseek(file.descriptor(), 0, SEEK_SET);
  auto reader = SegmentReader::open(std::move(file));
  if (!reader) return;
  while (true) {
    const auto run = reader->next_run();
    if (!run || run->empty()) return;
    unsigned sum = 0;
    for (const std::byte byte : *run) sum += std::to_integer<unsigned>(byte);  // every byte is readable
    volatile unsigned sink = sum;
    static_cast<void>(sink);
  }
}

// Feeds LZ4 arbitrary bytes, behind a header that fits them.
void unpack(std::span<const std::byte> stored) {
  if (stored.size() < 4) return;
  uint32_t raw_bytes = 0;
  std::memcpy(&raw_bytes, stored.data(), sizeof(raw_bytes));
  raw_bytes = (raw_bytes % kBlockRawBytesMax + 8) / 8 * 8;
  std::vector<std::byte> raw(raw_bytes);
  // The checksum is part of the header, so let the format say which it wants: a wrong one must be refused first.
  BlockHeader header{.stored_bytes = static_cast<uint32_t>(stored.size()),
                     .raw_bytes = raw_bytes,
                     .number = 0,
                     .kind = BlockKind::lz4,
                     .checksum = 0};
  if (decode_block({}, header, stored, raw)) std::abort();
  header.checksum = checksum_of({}, header, stored);
  static_cast<void>(decode_block({}, header, stored, raw));
}

// The bytes as frames in blocks that are right, which leads past every checksum of the segment to the frames' own.
void as_blocks(std::span<const std::byte> raw) {
  std::vector<std::byte> segment;
  append_segment_header({}, segment);
  uint32_t number = 0;
  raw = raw.first(raw.size() / 8 * 8);
  while (!raw.empty()) {
    const size_t piece = std::min(raw.size(), kBlockRawBytesMax);
    append_block({}, number++, raw.first(piece), segment);
    raw = raw.subspan(piece);
  }
  append_end_block({}, number, segment);
  drain(segment);
}

// As the marks of a durable log, and as one whose checksum is right.
void as_marks(std::span<const std::byte> bytes) {
  static_cast<void>(newest_mark(bytes));
  if (bytes.size() < kMarkBytes) return;
  LogMark mark;
  std::memcpy(&mark, bytes.data(), kMarkBytes);
  seal_mark(mark);
  const auto read = decode_mark(std::as_bytes(std::span(&mark, 1)));
  if (read.has_value() != (mark.first_segment <= mark.end_segment)) std::abort();
}

}  // namespace
}  // namespace thalweg::spill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thalweg::spill;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(first, first + size);  // own memory: the sanitizer watches its end
  drain(bytes);
  unpack(bytes);
  as_blocks(bytes);
  as_marks(bytes);
  return 0;
}
