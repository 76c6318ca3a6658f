#include "mining/conversions.h"
#include "wal/heap_page.h"
#include "wal/little_endian.h"

// array_send of src/backend/utils/adt/arrayfuncs.c; the layout is that of src/include/utils/array.h. Places in an array
// count from its length, which `content` does not have.

namespace thalweg::mining {

bool append_array(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kLengthBytes = 4;
  constexpr size_t kFixedBytes = 12;
  constexpr size_t kDimensionsMax = 6;
  const SendForm& element = *form.element;
  if (content.size() < kFixedBytes) return false;
  const auto dimensions = wal::load<uint32_t>(content, 0);
  const auto data_offset = wal::load<uint32_t>(content, 4);
  const size_t header = kFixedBytes + size_t{dimensions} * 8;
  if (dimensions > kDimensionsMax || content.size() < header) return false;
  append_network(out, dimensions);
  append_network(out, uint32_t{data_offset != 0});
  append_network(out, wal::load<uint32_t>(content, 8));
  size_t count = dimensions == 0 ? 0 : 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const auto extent = wal::load<uint32_t>(content, kFixedBytes + 4 * i);
    if (extent > content.size() * 8) return false;  // each element has at least a bit, of NULLs
    count *= extent;
    if (count > content.size() * 8) return false;
    append_network(out, extent);
    append_network(out, wal::load<uint32_t>(content, kFixedBytes + 4 * (dimensions + i)));
  }
  const auto is_null = [&](size_t i) {
    return data_offset != 0 && (wal::load<uint8_t>(content, header + i / 8) & (1U << (i % 8))) == 0;
  };
  if (data_offset != 0 && (data_offset < kLengthBytes + header || content.size() < header + (count + 7) / 8)) {
    return false;
  }
  size_t at = data_offset != 0 ? data_offset : (kLengthBytes + header + 7) / 8 * 8;
  for (size_t i = 0; i < count; ++i) {
    if (is_null(i)) {
      append_network(out, kNullLength);
      continue;
    }
    at = wal::begin_of_value(content, at, element.length, element.align, kLengthBytes);
    if (at - kLengthBytes > content.size()) return false;
    const auto bytes = append_member(element, content.subspan(at - kLengthBytes), out);
    if (!bytes) return false;
    at += *bytes;
  }
  return true;
}

}  // namespace thalweg::mining
