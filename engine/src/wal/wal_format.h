#pragma once

#include <cstdint>
#include <span>

// The differences between PostgreSQL's major versions in what the log reader needs of the WAL's layout. Everything else
// of pages and records is the same in all of them: page_header.h, wal_record.h, record_parts.h. Integers are the
// source's own; only those of a little-endian machine with blocks of 8 KiB are read.

namespace thalweg::wal {

inline constexpr uint32_t kPageBytes = 8192;              // XLOG_BLCKSZ, also BLCKSZ
inline constexpr uint32_t kRecordAlignment = 8;           // MAXALIGN
inline constexpr uint32_t kRecordBytesMax = 1020U << 20;  // XLogRecordMaxSize of version 16; no earlier one makes more

// How the image of a block is compressed.
enum class Compression : uint8_t { none, pglz, lz4, zstd };

// A layout. Immutable; those that exist are in one table.
struct WalFormat {
  uint16_t page_magic;      // XLOG_PAGE_MAGIC (src/include/access/xlog_internal.h)
  int version;              // PostgreSQL's major version
  uint16_t overwrite_flag;  // of a page's xlp_info: XLP_FIRST_IS_OVERWRITE_CONTRECORD
  uint8_t image_applies;    // of an image's bimg_info: BKPIMAGE_APPLY
  uint8_t image_pglz;       // and by what it is compressed; 0: not in this version
  uint8_t image_lz4;
  uint8_t image_zstd;
  uint8_t dropped_statistics_bytes;  // of one of those that the end of a transaction lists; 0: it has no such list
};

// From the oldest on.
std::span<const WalFormat> wal_formats();
// Null for a magic of a version that is not known.
const WalFormat* wal_format_of(uint16_t page_magic);

}  // namespace thalweg::wal
