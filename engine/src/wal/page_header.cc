#include "wal/page_header.h"

#include <fmt/format.h>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

// Of xlp_info, the same in all versions.
constexpr uint16_t kContinues = 0x01;
constexpr uint16_t kLong = 0x02;
constexpr uint16_t kAllFlags = 0x0F;

std::unexpected<base::Error> refusal(base::Lsn address, const std::string& what) {
  return violation(address, fmt::format("The page of WAL at {} {}.", to_string(address), what));
}

}  // namespace

base::Result<PageHeader> parse_page_header(std::span<const std::byte> bytes, base::Lsn address) {
  const auto magic = load<uint16_t>(bytes, 0);
  const auto info = load<uint16_t>(bytes, 2);
  const bool is_long = bytes.size() == kLongPageHeaderBytes;
  PageHeader header{.format = wal_format_of(magic),
                    .timeline = load<uint32_t>(bytes, 4),
                    .address = {load<uint64_t>(bytes, 8)},
                    .continues_record = (info & kContinues) != 0,
                    .remaining = load<uint32_t>(bytes, 16)};
  if (header.format == nullptr) {
    return refusal(address, fmt::format("has the magic {:04X}, of no version that is known", magic));
  }
  if ((info & ~kAllFlags) != 0) return refusal(address, fmt::format("has the flags {:04X}", info));
  if (header.address != address) {
    return refusal(address, fmt::format("says that it is at {}", to_string(header.address)));
  }
  if (((info & kLong) != 0) != is_long) {
    return refusal(
        address, is_long ? "begins a segment without saying so" : "says that it begins a segment, in the midst of one");
  }
  header.overwrites_record = (info & header.format->overwrite_flag) != 0;
  if (header.continues_record && header.overwrites_record) {
    return refusal(address, "continues a record and overwrites it");
  }
  if (header.continues_record != (header.remaining != 0)) {
    return refusal(address, fmt::format("has {} bytes of a record that it does{} continue", header.remaining,
                                        header.continues_record ? "" : " not"));
  }
  if (is_long) {
    header.system_identifier = load<uint64_t>(bytes, 24);
    header.segment_bytes = load<uint32_t>(bytes, 32);
    const auto page_bytes = load<uint32_t>(bytes, 36);
    if (page_bytes != kPageBytes) {
      return refusal(address, fmt::format("says that pages have {} bytes", page_bytes));
    }
  }
  return header;
}

}  // namespace thalweg::wal
