#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

// The bytes of a spill segment, version 1 (docs/formats/spill.md): a header, blocks of LCR frames, an end block.
// Pure functions over memory; whoever reads and writes files is in spill_log.h and segment_reader.h.

namespace thalweg::spill {

inline constexpr size_t kSegmentHeaderBytes = 32;
inline constexpr size_t kBlockHeaderBytes = 24;
inline constexpr size_t kBlockRawBytesMax = size_t{64} << 10;  // lz4 looks back no further than this

// Identity of a segment: its log (unique in its directory), and its place in that log, from 0.
struct SegmentId {
  uint64_t log = 0;
  uint32_t number = 0;
  bool operator==(const SegmentId&) const = default;
};

enum class BlockKind : uint8_t {
  plain = 0,  // stored as it is: lz4 would not have made it smaller
  lz4 = 1,    // one LZ4 block, without LZ4's frame
  end = 2,    // the segment is complete
};

struct BlockHeader {
  uint32_t stored_bytes;  // behind the header; at most raw_bytes
  uint32_t raw_bytes;     // of frames: 1 to kBlockRawBytesMax, a multiple of 8; 0 in an end block
  uint32_t number;        // place in the segment, from 0
  BlockKind kind;
  uint64_t checksum;
};

// --- writing
void append_segment_header(SegmentId id, std::vector<std::byte>& out);
// Appends one whole block, header included, compressed where that makes it smaller.
void append_block(SegmentId id, uint32_t number, std::span<const std::byte> raw, std::vector<std::byte>& out);
void append_end_block(SegmentId id, uint32_t number, std::vector<std::byte>& out);

// --- reading: foreign bytes; corrupt_frame unless they are what was written
base::Result<SegmentId> decode_segment_header(std::span<const std::byte> bytes);
// Lengths, kind and number are within their bounds; the checksum is looked at with the payload.
base::Result<BlockHeader> decode_block_header(std::span<const std::byte> bytes, uint32_t number_expected);
// Computes the checksum that a block must have.
uint64_t checksum_of(SegmentId id, const BlockHeader& header, std::span<const std::byte> stored);
// Checks `stored`, which is what stands behind `header` in segment `id`, and unpacks it into `raw`, which has
// header.raw_bytes.
base::Result<void> decode_block(SegmentId id, const BlockHeader& header, std::span<const std::byte> stored,
                                std::span<std::byte> raw);

}  // namespace thalweg::spill
