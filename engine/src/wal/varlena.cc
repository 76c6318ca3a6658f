#include "wal/varlena.h"

#include "wal/compression.h"
#include "wal/little_endian.h"

namespace thalweg::wal {

namespace {

constexpr uint32_t kLengthBits = 30;
constexpr uint32_t kLengthMask = (1U << kLengthBits) - 1;
constexpr size_t kHeaderBytes = 4;
// No compression makes less of more: of a byte each that goes on with a match, lz4 makes 255.
constexpr size_t kRatioMax = 256;

}  // namespace

std::optional<StoredValue> parse_value(std::span<const std::byte> bytes, int16_t length) {
  StoredValue value;
  if (length >= 0) {
    value.bytes = static_cast<size_t>(length);
    if (bytes.size() < value.bytes) return std::nullopt;
    value.content = bytes.first(value.bytes);
    return value;
  }
  if (length != -1 || bytes.empty()) return std::nullopt;
  const auto first = load<uint8_t>(bytes, 0);
  if (first == 0x01) {
    constexpr uint8_t kOnDisk = 18;  // VARTAG_ONDISK
    constexpr size_t kPointerBytes = 18;
    if (bytes.size() < kPointerBytes || load<uint8_t>(bytes, 1) != kOnDisk) return std::nullopt;
    const auto stored = load<uint32_t>(bytes, 6);
    value.external = {.raw_bytes = load<uint32_t>(bytes, 2),
                      .stored_bytes = stored & kLengthMask,
                      .compression = static_cast<uint8_t>(stored >> kLengthBits),
                      .value = load<uint32_t>(bytes, 10)};
    value.bytes = kPointerBytes;
    return value;
  }
  if ((first & 0x01) != 0) {
    value.bytes = first >> 1;
    if (value.bytes > bytes.size()) return std::nullopt;
    value.content = bytes.subspan(1, value.bytes - 1);
    return value;
  }
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  value.bytes = load<uint32_t>(bytes, 0) >> 2;
  value.is_compressed = (first & 0x02) != 0;
  const size_t header = value.is_compressed ? 2 * kHeaderBytes : kHeaderBytes;
  if (value.bytes < header || value.bytes > bytes.size()) return std::nullopt;
  if (value.is_compressed) {
    const auto info = load<uint32_t>(bytes, kHeaderBytes);
    value.raw_bytes = info & kLengthMask;
    value.compression = static_cast<uint8_t>(info >> kLengthBits);
  }
  value.content = bytes.subspan(header, value.bytes - header);
  return value;
}

std::optional<std::string> decompressed(std::span<const std::byte> bytes, uint8_t compression, uint32_t raw_bytes) {
  if (compression > 1 || raw_bytes > bytes.size() * kRatioMax) return std::nullopt;
  std::string content(raw_bytes, '\0');
  const auto method = compression == 0 ? Compression::pglz : Compression::lz4;
  if (!decompress(bytes, method, std::as_writable_bytes(std::span{content}))) return std::nullopt;
  return content;
}

std::optional<std::span<const std::byte>> plain_content(const StoredValue& value, std::string& plain) {
  if (value.external) return std::nullopt;
  if (!value.is_compressed) return value.content;
  auto whole = decompressed(value.content, value.compression, value.raw_bytes);
  if (!whole) return std::nullopt;
  plain = std::move(*whole);
  return std::as_bytes(std::span{plain});
}

}  // namespace thalweg::wal
