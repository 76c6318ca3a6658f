#include "mining/conversions.h"
#include "wal/little_endian.h"

// Types of extensions that come with PostgreSQL (contrib).

namespace thalweg::mining {

// hstore_send of contrib/hstore/hstore_io.c; HStore of hstore.h: entries of keys and values in turn, each with where
// its text ends.
bool append_hstore(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kWordBytes = sizeof(uint32_t);
  constexpr uint32_t kNewVersion = 0x80000000;  // of all since 9.0
  constexpr uint32_t kCountMask = 0x0FFFFFFF;
  constexpr uint32_t kIsNull = 0x40000000;
  constexpr uint32_t kEndMask = 0x3FFFFFFF;
  if (content.size() < kWordBytes) return false;
  const auto header = wal::load<uint32_t>(content, 0);
  const uint32_t count = header & kCountMask;
  // An empty one may have no version (hstoreUpgrade of hstore_compat.c).
  if ((header & kNewVersion) == 0 && count != 0) return false;
  if (count > (content.size() - kWordBytes) / (2 * kWordBytes)) return false;
  const auto entries = content.subspan(kWordBytes, size_t{count} * 2 * kWordBytes);
  const std::string_view text = text_of(content.subspan(kWordBytes + entries.size()));
  append_network(out, count);
  size_t begin = 0;
  for (size_t i = 0; i < size_t{count} * 2; ++i) {
    const auto entry = wal::load<uint32_t>(entries, i * kWordBytes);
    const size_t end = entry & kEndMask;
    if (end < begin || end > text.size()) return false;
    if (i % 2 != 0 && (entry & kIsNull) != 0) {
      append_network(out, kNullLength);
    } else {
      append_network(out, static_cast<uint32_t>(end - begin));
      out += text.substr(begin, end - begin);
    }
    begin = end;
  }
  return true;
}

// ltree_send of contrib/ltree/ltree_io.c: a version, then the labels with points between them. Places count from the
// value's length, which `content` does not have.
bool append_ltree(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr char kVersion = 1;
  constexpr size_t kLabelsAt = 4;
  constexpr size_t kAlignment = 8;
  if (content.size() < sizeof(uint16_t)) return false;
  const auto count = wal::load<uint16_t>(content, 0);
  out += kVersion;
  size_t at = kLabelsAt;
  for (size_t i = 0; i < count; ++i) {
    if (at + sizeof(uint16_t) > content.size()) return false;
    const auto length = wal::load<uint16_t>(content, at);
    if (at + sizeof(uint16_t) + length > content.size()) return false;
    if (i != 0) out += '.';
    out += text_of(content.subspan(at + sizeof(uint16_t), length));
    at += (sizeof(uint16_t) + length + kAlignment - 1) / kAlignment * kAlignment;
  }
  return true;
}

// cube_send of contrib/cube/cube.c: a header, then numbers.
bool append_cube(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kNumbersAt = 4;
  constexpr uint32_t kIsPoint = 0x80000000;
  if (content.size() < kNumbersAt) return false;
  const auto header = wal::load<uint32_t>(content, 0);
  const size_t count = size_t{header & ~kIsPoint} * ((header & kIsPoint) != 0 ? 1 : 2);
  if (content.size() - kNumbersAt != count * sizeof(uint64_t)) return false;
  append_network(out, header);
  for (size_t i = 0; i < count; ++i)
    append_network(out, wal::load<uint64_t>(content, kNumbersAt + i * sizeof(uint64_t)));
  return true;
}

}  // namespace thalweg::mining
