#include "wal/record_parts.h"

#include <fmt/format.h>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

// Ids that are no block's.
constexpr uint8_t kShortData = 255;  // a length of one byte
constexpr uint8_t kLongData = 254;   // of four
constexpr uint8_t kOrigin = 253;
constexpr uint8_t kTopLevelXid = 252;

// Of a reference's fork_flags.
constexpr uint8_t kForkMask = 0x0F;
constexpr uint8_t kHasImage = 0x10;
constexpr uint8_t kHasData = 0x20;
constexpr uint8_t kInitialised = 0x40;
constexpr uint8_t kSameFile = 0x80;

constexpr uint8_t kHasHole = 0x01;  // of an image's bimg_info

std::unexpected<base::Error> refusal(const WalRecord& record, const std::string& what) {
  return violation(record.begin, fmt::format("The record at {} {}.", to_string(record.begin), what), record.xid);
}

// Reads the headers at the begin of a body; afterwards the rest is cut by the lengths that they gave.
class Headers {
 public:
  explicit Headers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(size_t bytes) const { return bytes_.size() >= bytes; }
  size_t left() const { return bytes_.size(); }
  template <typename Integer>
  Integer take() {
    const auto value = load<Integer>(bytes_, 0);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::span<const std::byte> take(size_t bytes) {
    const auto taken = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Lengths {
  uint16_t image = 0;
  uint16_t data = 0;
};

Compression compression_of(uint8_t info, const WalFormat& format) {
  if ((info & format.image_pglz) != 0) return Compression::pglz;
  if ((info & format.image_lz4) != 0) return Compression::lz4;
  if ((info & format.image_zstd) != 0) return Compression::zstd;
  return Compression::none;
}

// `length`: of the image's bytes. Whether the parts of its header fit together.
bool fits(const BlockImage& image, uint16_t length, bool has_hole) {
  if (has_hole && (image.hole_offset == 0 || image.hole_bytes == 0 || length == kPageBytes)) return false;
  if (!has_hole && (image.hole_offset != 0 || image.hole_bytes != 0)) return false;
  if (image.hole_offset + image.hole_bytes > kPageBytes) return false;
  if (image.compression != Compression::none) return length < kPageBytes;
  return length + image.hole_bytes == kPageBytes;
}

// False: bytes are missing, or they contradict each other.
bool take_image(Headers& headers, const WalFormat& format, BlockReference& block, uint16_t& length) {
  constexpr size_t kImageHeaderBytes = 5;
  if (!headers.has(kImageHeaderBytes)) return false;
  length = headers.take<uint16_t>();
  block.image = {.bytes = {}, .hole_offset = headers.take<uint16_t>()};
  const auto info = headers.take<uint8_t>();
  const bool has_hole = (info & kHasHole) != 0;
  block.image.compression = compression_of(info, format);
  block.image.applies = (info & format.image_applies) != 0;
  if (has_hole && block.image.compression != Compression::none) {
    if (!headers.has(sizeof(uint16_t))) return false;
    block.image.hole_bytes = headers.take<uint16_t>();
  } else if (has_hole) {
    if (length > kPageBytes) return false;
    block.image.hole_bytes = static_cast<uint16_t>(kPageBytes - length);
  }
  return fits(block.image, length, has_hole);
}

// `file`: of the reference before, or null. False as above.
bool take_block(Headers& headers, const WalFormat& format, const RelationFile* file, BlockReference& block,
                Lengths& lengths) {
  constexpr size_t kFixedBytes = 3;
  constexpr size_t kFileBytes = 12;
  if (!headers.has(kFixedBytes)) return false;
  const auto flags = headers.take<uint8_t>();
  lengths = {.image = 0, .data = headers.take<uint16_t>()};
  if ((flags & kForkMask) > static_cast<uint8_t>(Fork::initialisation)) return false;
  block.fork = static_cast<Fork>(flags & kForkMask);
  block.is_initialised = (flags & kInitialised) != 0;
  block.has_image = (flags & kHasImage) != 0;
  block.has_data = (flags & kHasData) != 0;
  block.image = {};
  block.data = {};
  if (block.has_data != (lengths.data != 0)) return false;
  if (block.has_image && !take_image(headers, format, block, lengths.image)) return false;
  if ((flags & kSameFile) != 0) {
    if (file == nullptr) return false;
    block.file = *file;
  } else {
    if (!headers.has(kFileBytes)) return false;
    block.file.tablespace = headers.take<uint32_t>();
    block.file.database = headers.take<uint32_t>();
    block.file.number = headers.take<uint32_t>();
  }
  if (!headers.has(sizeof(uint32_t))) return false;
  block.block = headers.take<uint32_t>();
  return true;
}

}  // namespace

base::Result<void> RecordParts::parse(const WalRecord& record, const WalFormat& format) {
  block_count_ = 0;
  data_ = {};
  origin_ = 0;
  top_level_ = {};
  std::array<Lengths, kBlocksMax> lengths;
  Headers headers(record.body);
  // The data of all parts follow the headers of all; the record's own come last, and so does their header.
  size_t announced = 0;
  uint32_t data_bytes = 0;
  bool has_data = false;
  while (headers.left() > announced && !has_data) {
    const auto id = headers.take<uint8_t>();
    if (id == kShortData || id == kLongData) {
      const size_t length_bytes = id == kShortData ? sizeof(uint8_t) : sizeof(uint32_t);
      if (!headers.has(length_bytes)) return refusal(record, "ends within the length of its data");
      data_bytes = id == kShortData ? headers.take<uint8_t>() : headers.take<uint32_t>();
      has_data = true;
    } else if (id == kOrigin) {
      if (!headers.has(sizeof origin_)) return refusal(record, "ends within its origin");
      origin_ = headers.take<uint16_t>();
    } else if (id == kTopLevelXid) {
      if (!headers.has(sizeof(uint32_t))) return refusal(record, "ends within its top-level transaction");
      top_level_ = {headers.take<uint32_t>()};
    } else if (id < kBlocksMax) {
      const BlockReference* const before = block_count_ == 0 ? nullptr : &blocks_[block_count_ - 1];
      if (before != nullptr && id <= before->id) return refusal(record, "refers to its blocks out of order");
      BlockReference& block = blocks_[block_count_];
      block.id = id;
      if (!take_block(headers, format, before == nullptr ? nullptr : &before->file, block, lengths[block_count_])) {
        return refusal(record, fmt::format("refers to block {} by a header that contradicts itself", id));
      }
      announced += size_t{lengths[block_count_].image} + lengths[block_count_].data;
      ++block_count_;
    } else {
      return refusal(record, fmt::format("has a part of the unknown kind {}", id));
    }
  }
  if (headers.left() != announced + data_bytes) {
    return refusal(record, fmt::format("has {} bytes of data and says {}", headers.left(), announced + data_bytes));
  }
  for (size_t i = 0; i < block_count_; ++i) {
    blocks_[i].image.bytes = headers.take(lengths[i].image);
    blocks_[i].data = headers.take(lengths[i].data);
  }
  data_ = headers.take(data_bytes);
  return {};
}

const BlockReference* RecordParts::block(uint8_t id) const {
  for (const BlockReference& block : blocks()) {
    if (block.id == id) return &block;
  }
  return nullptr;
}

uint64_t RecordParts::image_bytes() const {
  uint64_t bytes = 0;
  for (const BlockReference& block : blocks()) bytes += block.image.bytes.size();
  return bytes;
}

}  // namespace thalweg::wal
