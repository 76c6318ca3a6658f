#include "mining/varlena.h"

#include "wal/compression.h"
#include "wal/little_endian.h"

namespace thalweg::mining {

namespace {

constexpr uint32_t kLengthBits = 30;
constexpr uint32_t kLengthMask = (1U << kLengthBits) - 1;
constexpr size_t kHeaderBytes = 4;

}  // namespace

std::optional<Varlena> parse_varlena(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto first = wal::load<uint8_t>(bytes, 0);
  Varlena value;
  if (first == 0x01) {
    constexpr uint8_t kOnDisk = 18;  // VARTAG_ONDISK
    constexpr size_t kPointerBytes = 18;
    if (bytes.size() < kPointerBytes || wal::load<uint8_t>(bytes, 1) != kOnDisk) return std::nullopt;
    const auto stored = wal::load<uint32_t>(bytes, 6);
    value.external = {.raw_bytes = wal::load<uint32_t>(bytes, 2),
                      .stored_bytes = stored & kLengthMask,
                      .compression = static_cast<uint8_t>(stored >> kLengthBits),
                      .value = wal::load<uint32_t>(bytes, 10)};
    value.bytes = kPointerBytes;
    return value;
  }
  if ((first & 0x01) != 0) {
    value.bytes = first >> 1;
    if (value.bytes < 1 || value.bytes > bytes.size()) return std::nullopt;
    value.content = bytes.subspan(1, value.bytes - 1);
    return value;
  }
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  value.bytes = wal::load<uint32_t>(bytes, 0) >> 2;
  value.is_compressed = (first & 0x02) != 0;
  const size_t header = value.is_compressed ? 2 * kHeaderBytes : kHeaderBytes;
  if (value.bytes < header || value.bytes > bytes.size()) return std::nullopt;
  if (value.is_compressed) {
    const auto info = wal::load<uint32_t>(bytes, kHeaderBytes);
    value.raw_bytes = info & kLengthMask;
    value.compression = static_cast<uint8_t>(info >> kLengthBits);
  }
  value.content = bytes.subspan(header, value.bytes - header);
  return value;
}

std::optional<std::string> decompressed(std::span<const std::byte> bytes, uint8_t compression, uint32_t raw_bytes) {
  if (compression > 1) return std::nullopt;
  std::string content(raw_bytes, '\0');
  const auto method = compression == 0 ? wal::Compression::pglz : wal::Compression::lz4;
  if (!wal::decompress(bytes, method, std::as_writable_bytes(std::span{content}))) return std::nullopt;
  return content;
}

}  // namespace thalweg::mining
