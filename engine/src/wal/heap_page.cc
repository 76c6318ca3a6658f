#include "wal/heap_page.h"

#include <fmt/format.h>

#include <cstring>

#include "wal/compression.h"
#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

constexpr size_t kLowerAt = 12;  // pd_lower: where the line pointers end
constexpr size_t kPageHeapHeaderBytes = 24;
constexpr size_t kLinePointerBytes = 4;
constexpr uint32_t kNormal = 1;  // LP_NORMAL

// Offsets in a tuple's header.
constexpr size_t kXmaxAt = 4;
constexpr size_t kInfomask2At = 18;
constexpr size_t kInfomaskAt = 20;
constexpr size_t kHeaderBytesAt = 22;

}  // namespace

size_t aligned(size_t at, char align) {
  const size_t multiple = align == 's' ? 2 : align == 'i' ? 4 : align == 'd' ? 8 : 1;
  return (at + multiple - 1) / multiple * multiple;
}

size_t begin_of_value(std::span<const std::byte> bytes, size_t at, int16_t length, char align, size_t before) {
  // Padding before a value with a long length is zeros; the first byte of a short length is none.
  const bool is_short = length == -1 && at - before < bytes.size() && bytes[at - before] != std::byte{0};
  return is_short ? at : aligned(at, align);
}

bool is_whole(const HeapTuple& tuple) {
  if (tuple.header_bytes < kTupleHeaderBytes) return false;
  const size_t before_values = tuple.header_bytes - kTupleHeaderBytes;
  const size_t bitmap_bytes = (tuple.infomask & kHasNull) != 0 ? (size_t{tuple.columns()} + 7) / 8 : 0;
  return bitmap_bytes <= before_values && before_values <= tuple.data.size();
}

base::Result<void> HeapPage::restore(const BlockImage& image, base::Lsn record) {
  record_ = record;
  offsets_ = 0;
  // The hole is cut out of the middle: what is decompressed is first put before it, its end moved behind it then.
  const size_t present = kPageBytes - image.hole_bytes;
  if (image.hole_offset > present || !decompress(image.bytes, image.compression, std::span{bytes_}.first(present))) {
    return violation(record, fmt::format("The image of a page at {} cannot be restored.", to_string(record)));
  }
  if (image.hole_bytes != 0) {
    std::memmove(bytes_.data() + image.hole_offset + image.hole_bytes, bytes_.data() + image.hole_offset,
                 present - image.hole_offset);
    std::memset(bytes_.data() + image.hole_offset, 0, image.hole_bytes);
  }
  const auto lower = load<uint16_t>(bytes_, kLowerAt);
  if (lower == 0) return {};
  if (lower < kPageHeapHeaderBytes || lower > kPageBytes || (lower - kPageHeapHeaderBytes) % kLinePointerBytes != 0) {
    return violation(record, fmt::format("The image at {} is not of a table's page.", to_string(record)));
  }
  offsets_ = static_cast<uint16_t>((lower - kPageHeapHeaderBytes) / kLinePointerBytes);
  return {};
}

base::Result<std::optional<PageTuple>> HeapPage::tuple(uint16_t offset) const {
  if (offset == 0 || offset > offsets_) return std::nullopt;
  const auto pointer = load<uint32_t>(bytes_, kPageHeapHeaderBytes + (offset - size_t{1}) * kLinePointerBytes);
  if (((pointer >> 15) & 3) != kNormal) return std::nullopt;
  const size_t at = pointer & 0x7FFF;
  const size_t length = pointer >> 17;
  const auto refused = [&] {
    return violation(record_,
                     fmt::format("Tuple {} of the page at {} does not fit on it.", offset, to_string(record_)));
  };
  if (length < kTupleHeaderBytes || at + length > kPageBytes) return refused();
  const auto bytes = std::span{bytes_}.subspan(at, length);
  const HeapTuple tuple{.infomask2 = load<uint16_t>(bytes, kInfomask2At),
                        .infomask = load<uint16_t>(bytes, kInfomaskAt),
                        .header_bytes = load<uint8_t>(bytes, kHeaderBytesAt),
                        .data = bytes.subspan(kTupleHeaderBytes)};
  if (!is_whole(tuple)) return refused();
  return PageTuple{.tuple = tuple, .xmin = {load<uint32_t>(bytes, 0)}, .xmax = {load<uint32_t>(bytes, kXmaxAt)}};
}

}  // namespace thalweg::wal
