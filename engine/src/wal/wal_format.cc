#include "wal/wal_format.h"

#include <algorithm>
#include <array>

namespace thalweg::wal {

namespace {

// 15 moved the flags of images; 18 made dropped statistics longer; 19 moved the flag of overwritten records.
constexpr WalFormat since_15(uint16_t page_magic, int version, uint8_t dropped_statistics_bytes = 12,
                             uint16_t overwrite_flag = 0x08) {
  return {.page_magic = page_magic,
          .version = version,
          .overwrite_flag = overwrite_flag,
          .image_applies = 0x02,
          .image_pglz = 0x04,
          .image_lz4 = 0x08,
          .image_zstd = 0x10,
          .dropped_statistics_bytes = dropped_statistics_bytes};
}

constexpr std::array<WalFormat, 6> kFormats = {{
    {.page_magic = 0xD10D,
     .version = 14,
     .overwrite_flag = 0x08,
     .image_applies = 0x04,
     .image_pglz = 0x02,
     .image_lz4 = 0,
     .image_zstd = 0,
     .dropped_statistics_bytes = 0},
    since_15(0xD110, 15),
    since_15(0xD113, 16),
    since_15(0xD116, 17),
    since_15(0xD118, 18, 16),
    since_15(0xD120, 19, 16, 0x04),
}};

}  // namespace

std::span<const WalFormat> wal_formats() { return kFormats; }

const WalFormat* wal_format_of(uint16_t page_magic) {
  const auto* const found = std::ranges::find(kFormats, page_magic, &WalFormat::page_magic);
  return found == kFormats.end() ? nullptr : found;
}

}  // namespace thalweg::wal
