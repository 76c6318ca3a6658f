#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "wal/wal_format.h"

// The header of a page of WAL (XLogPageHeaderData, XLogLongPageHeaderData: src/include/access/xlog_internal.h).

namespace thalweg::wal {

inline constexpr size_t kPageHeaderBytes = 24;
inline constexpr size_t kLongPageHeaderBytes = 40;  // of a segment's first page

struct PageHeader {
  const WalFormat* format = nullptr;
  uint32_t timeline = 0;
  base::Lsn address;               // of the page's first byte
  bool continues_record = false;   // its first bytes are those of a record that began on an earlier page
  bool overwrites_record = false;  // the record that an earlier page began was never finished
  uint32_t remaining = 0;          // bytes of that record that are still to come, on this page and later ones
  // Of a segment's first page, else 0.
  uint64_t system_identifier = 0;
  uint32_t segment_bytes = 0;
};

// How many bytes the header of the page at `address` has.
inline size_t page_header_bytes(base::Lsn address, uint32_t segment_bytes) {
  return address.value % segment_bytes == 0 ? kLongPageHeaderBytes : kPageHeaderBytes;
}

// `bytes`: as many as page_header_bytes says, of the page that ought to be at `address`. A protocol_violation: another
// magic, address or size, or unknown flags.
base::Result<PageHeader> parse_page_header(std::span<const std::byte> bytes, base::Lsn address);

}  // namespace thalweg::wal
