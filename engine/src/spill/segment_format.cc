#include "spill/segment_format.h"

#include <lz4.h>

#include <array>
#include <cassert>
#include <cstring>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace thalweg::spill {

namespace {

using base::ErrorCode;
using base::Result;

constexpr std::array<char, 8> kMagic{'T', 'H', 'W', 'S', 'P', 'I', 'L', 'L'};
constexpr uint16_t kVersion = 1;

// Headers as they lie in the file: little-endian, as every machine that the engine runs on.
struct HeaderBytes {
  std::array<char, 8> magic;
  uint16_t version;
  uint16_t unused;
  uint32_t number;
  uint64_t log;
  uint64_t checksum;  // of the 24 bytes before it
};
static_assert(sizeof(HeaderBytes) == kSegmentHeaderBytes);

struct BlockBytes {
  uint32_t stored_bytes;
  uint32_t raw_bytes;
  uint32_t number;
  uint32_t kind;
  uint64_t checksum;
};
static_assert(sizeof(BlockBytes) == kBlockHeaderBytes);

// Of the first 16 bytes of the header and of what is stored. Seeded with the segment, so that a block of another
// segment is none of this.
uint64_t block_checksum(SegmentId id, const BlockBytes& header, std::span<const std::byte> stored) {
  const uint64_t seed = XXH3_64bits_withSeed(&id.log, sizeof(id.log), id.number);
  const uint64_t of_header = XXH3_64bits_withSeed(&header, offsetof(BlockBytes, checksum), seed);
  return XXH3_64bits_withSeed(stored.data(), stored.size(), of_header);
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(value));
}

}  // namespace

void append_segment_header(SegmentId id, std::vector<std::byte>& out) {
  HeaderBytes header{
      .magic = kMagic, .version = kVersion, .unused = 0, .number = id.number, .log = id.log, .checksum = 0};
  header.checksum = XXH3_64bits(&header, offsetof(HeaderBytes, checksum));
  const auto bytes = bytes_of(header);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_block(SegmentId id, uint32_t number, std::span<const std::byte> raw, std::vector<std::byte>& out) {
  assert(!raw.empty() && raw.size() <= kBlockRawBytesMax && raw.size() % 8 == 0);
  const size_t at = out.size();
  out.resize(at + kBlockHeaderBytes + raw.size());
  std::byte* const stored = out.data() + at + kBlockHeaderBytes;
  const int packed =
      LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(stored),
                           static_cast<int>(raw.size()), static_cast<int>(raw.size()) - 1);  // 0: not smaller
  if (packed <= 0) std::memcpy(stored, raw.data(), raw.size());
  const size_t stored_bytes = packed > 0 ? static_cast<size_t>(packed) : raw.size();
  out.resize(at + kBlockHeaderBytes + stored_bytes);
  BlockBytes header{.stored_bytes = static_cast<uint32_t>(stored_bytes),
                    .raw_bytes = static_cast<uint32_t>(raw.size()),
                    .number = number,
                    .kind = static_cast<uint32_t>(packed > 0 ? BlockKind::lz4 : BlockKind::plain),
                    .checksum = 0};
  header.checksum = block_checksum(id, header, std::span(out).subspan(at + kBlockHeaderBytes));
  put(out.data() + at, header);
}

void append_end_block(SegmentId id, uint32_t number, std::vector<std::byte>& out) {
  BlockBytes header{.stored_bytes = 0,
                    .raw_bytes = 0,
                    .number = number,
                    .kind = static_cast<uint32_t>(BlockKind::end),
                    .checksum = 0};
  header.checksum = block_checksum(id, header, {});
  const auto bytes = bytes_of(header);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Result<SegmentId> decode_segment_header(std::span<const std::byte> bytes) {
  HeaderBytes header{};
  if (bytes.size() < sizeof(header)) return base::fail(ErrorCode::corrupt_frame, "a spill segment without a header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return base::fail(ErrorCode::corrupt_frame, "not a spill segment");
  if (header.version != kVersion) {
    return base::fail(ErrorCode::corrupt_frame, "a spill segment of version " + std::to_string(header.version) +
                                                    ", not " + std::to_string(kVersion));
  }
  if (header.unused != 0 || header.checksum != XXH3_64bits(&header, offsetof(HeaderBytes, checksum))) {
    return base::fail(ErrorCode::corrupt_frame, "a spill segment's header is damaged");
  }
  return SegmentId{.log = header.log, .number = header.number};
}

Result<BlockHeader> decode_block_header(std::span<const std::byte> bytes, uint32_t number_expected) {
  BlockBytes header{};
  if (bytes.size() < sizeof(header)) return base::fail(ErrorCode::corrupt_frame, "a spill segment's tail is torn");
  std::memcpy(&header, bytes.data(), sizeof(header));
  const bool is_end = header.kind == static_cast<uint32_t>(BlockKind::end);
  const bool is_plain = header.kind == static_cast<uint32_t>(BlockKind::plain);
  const bool is_packed = header.kind == static_cast<uint32_t>(BlockKind::lz4);
  const bool has_data = header.raw_bytes > 0 && header.raw_bytes <= kBlockRawBytesMax && header.raw_bytes % 8 == 0 &&
                        header.stored_bytes > 0;
  const bool fits = (is_end && header.raw_bytes == 0 && header.stored_bytes == 0) ||
                    (is_plain && has_data && header.stored_bytes == header.raw_bytes) ||
                    (is_packed && has_data && header.stored_bytes < header.raw_bytes);
  if (!fits || header.number != number_expected) {
    return base::fail(ErrorCode::corrupt_frame,
                      "block " + std::to_string(number_expected) + " of a spill segment has a damaged header");
  }
  return BlockHeader{.stored_bytes = header.stored_bytes,
                     .raw_bytes = header.raw_bytes,
                     .number = header.number,
                     .kind = static_cast<BlockKind>(header.kind),
                     .checksum = header.checksum};
}

uint64_t checksum_of(SegmentId id, const BlockHeader& header, std::span<const std::byte> stored) {
  return block_checksum(id,
                        {.stored_bytes = header.stored_bytes,
                         .raw_bytes = header.raw_bytes,
                         .number = header.number,
                         .kind = static_cast<uint32_t>(header.kind),
                         .checksum = 0},
                        stored);
}

Result<void> decode_block(SegmentId id, const BlockHeader& header, std::span<const std::byte> stored,
                          std::span<std::byte> raw) {
  const auto damaged = [&](const char* what) {
    return base::fail(ErrorCode::corrupt_frame,
                      "block " + std::to_string(header.number) + " of a spill segment " + what);
  };
  if (stored.size() != header.stored_bytes || raw.size() != header.raw_bytes) return damaged("is torn");
  if (checksum_of(id, header, stored) != header.checksum) return damaged("fails its checksum");
  if (header.kind == BlockKind::plain) {
    std::memcpy(raw.data(), stored.data(), raw.size());
  } else if (header.kind == BlockKind::lz4) {
    const int unpacked =
        LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(raw.data()),
                            static_cast<int>(stored.size()), static_cast<int>(raw.size()));
    if (unpacked < 0 || static_cast<size_t>(unpacked) != raw.size()) return damaged("does not unpack");
  }
  return {};
}

}  // namespace thalweg::spill
