#include <cstring>

#include "mining/conversions.h"
#include "wal/little_endian.h"

// Values of which nothing but the order of bytes, or the begin, is another one when they are sent.

namespace thalweg::mining {

namespace {

constexpr size_t kPointBytes = 16;

// float8 or int8, one after the other, up to the end.
void append_words(std::span<const std::byte> words, std::string& out) {
  for (size_t at = 0; at + sizeof(uint64_t) <= words.size(); at += sizeof(uint64_t)) {
    append_network(out, wal::load<uint64_t>(words, at));
  }
}

// inet_struct of src/include/utils/inet.h; network_send of src/backend/utils/adt/network.c.
bool append_network_address(bool is_cidr, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kAddressAt = 2;  // behind family and bits
  constexpr uint8_t kFamily4 = 2;
  constexpr size_t kBytes4 = 4;
  constexpr size_t kBytes6 = 16;
  if (content.size() < kAddressAt) return false;
  const size_t bytes = wal::load<uint8_t>(content, 0) == kFamily4 ? kBytes4 : kBytes6;
  if (content.size() < kAddressAt + bytes) return false;
  out += text_of(content.first(kAddressAt));
  out += static_cast<char>(is_cidr ? 1 : 0);
  out += static_cast<char>(bytes);
  out += text_of(content.subspan(kAddressAt, bytes));
  return true;
}

}  // namespace

bool append_copied(const SendForm&, std::span<const std::byte> content, std::string& out) {
  out += text_of(content);
  return true;
}

bool append_swapped(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  size_t at = 0;
  for (const uint8_t bytes : form.parts) {
    if (bytes == 0) break;
    if (content.size() < at + bytes) return false;
    if (bytes == 2) append_network(out, wal::load<uint16_t>(content, at));
    if (bytes == 4) append_network(out, wal::load<uint32_t>(content, at));
    if (bytes == 8) append_network(out, wal::load<uint64_t>(content, at));
    at += bytes;
  }
  return at == content.size();
}

// Up to the first zero byte.
bool append_name(const SendForm&, std::span<const std::byte> content, std::string& out) {
  const std::string_view text = text_of(content);
  out += text.substr(0, text.find('\0'));
  return true;
}

// Their number, then the bits (src/include/utils/varbit.h).
bool append_bits(const SendForm&, std::span<const std::byte> content, std::string& out) {
  if (content.size() < sizeof(uint32_t)) return false;
  append_network(out, wal::load<uint32_t>(content, 0));
  out += text_of(content.subspan(sizeof(uint32_t)));
  return true;
}

bool append_label(const SendForm& form, std::span<const std::byte> content, std::string& out) {
  if (content.size() != sizeof(uint32_t)) return false;
  const auto found = form.labels->find(wal::load<uint32_t>(content, 0));
  if (found == form.labels->end()) return false;
  out += found->second;
  return true;
}

// The block's halves, the high one first, and the offset (src/include/storage/itemptr.h).
bool append_tuple_id(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kBytes = 6;
  if (content.size() != kBytes) return false;
  for (size_t at = 0; at < kBytes; at += 2) append_network(out, wal::load<uint16_t>(content, at));
  return true;
}

// pg_snapshot_send of src/backend/utils/adt/xid8funcs.c: how many are in progress, the two bounds, then those.
bool append_snapshot(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kBoundsAt = 4;
  constexpr size_t kRunningAt = kBoundsAt + 2 * sizeof(uint64_t);
  if (content.size() < kRunningAt) return false;
  const auto count = wal::load<uint32_t>(content, 0);
  if (content.size() - kRunningAt != size_t{count} * sizeof(uint64_t)) return false;
  append_network(out, count);
  append_words(content.subspan(kBoundsAt), out);
  return true;
}

bool append_inet(const SendForm&, std::span<const std::byte> content, std::string& out) {
  return append_network_address(false, content, out);
}

bool append_cidr(const SendForm&, std::span<const std::byte> content, std::string& out) {
  return append_network_address(true, content, out);
}

// PATH and POLYGON of src/include/utils/geo_decls.h; path_send and poly_send of src/backend/utils/adt/geo_ops.c.
bool append_path(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kIsClosedAt = 4;
  constexpr size_t kPointsAt = 12;  // behind padding
  if (content.size() < kPointsAt) return false;
  const auto count = wal::load<uint32_t>(content, 0);
  if (content.size() - kPointsAt != size_t{count} * kPointBytes) return false;
  out += static_cast<char>(wal::load<uint32_t>(content, kIsClosedAt) != 0 ? 1 : 0);
  append_network(out, count);
  append_words(content.subspan(kPointsAt), out);
  return true;
}

bool append_polygon(const SendForm&, std::span<const std::byte> content, std::string& out) {
  constexpr size_t kPointsAt = 36;  // behind the box around them
  if (content.size() < kPointsAt) return false;
  const auto count = wal::load<uint32_t>(content, 0);
  if (content.size() - kPointsAt != size_t{count} * kPointBytes) return false;
  append_network(out, count);
  append_words(content.subspan(kPointsAt), out);
  return true;
}

}  // namespace thalweg::mining
