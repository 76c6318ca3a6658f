#pragma once

#include <isa-l/crc.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "wal/page_header.h"
#include "wal/wal_record.h"

namespace thalweg::wal {

// Makes WAL for tests, as a server writes it: records on pages. Owner: the test.
class WalBytes {
 public:
  static constexpr uint64_t kSystem = 7'000'000'000'000'000'001;
  static constexpr uint32_t kSegmentBytes = 16U << 20;

  // `begin`: of a page.
  explicit WalBytes(base::Lsn begin, const WalFormat& format = *wal_format_of(0xD110))
      : format_(format), begin_(begin), position_(begin) {}

  // Appends a record with this body; gives its begin.
  base::Lsn record(std::string_view body, Rmgr rmgr = Rmgr::heap, uint8_t info = 0, base::Xid xid = {700}) {
    std::string bytes(kRecordHeaderBytes, '\0');
    bytes += body;
    put(bytes, 0, static_cast<uint32_t>(bytes.size()));
    put(bytes, 4, xid.value);
    put(bytes, 8, previous_.value);
    put(bytes, 16, info);
    put(bytes, 17, static_cast<uint8_t>(rmgr));
    put(bytes, 20, ~crc(bytes, 0, 20, crc(bytes, kRecordHeaderBytes, bytes.size(), 0xFFFFFFFF)));
    return append(bytes);
  }
  // The rest of the segment stays zero.
  base::Lsn switch_segment() {
    const base::Lsn begin = record("", Rmgr::xlog, 0x40);
    const uint64_t left = (kSegmentBytes - position_.value % kSegmentBytes) % kSegmentBytes;
    bytes_.resize(bytes_.size() + left);
    position_.value += left;
    return begin;
  }
  // Appends a record of which only the first pages were written before the server ended, and the one that says so.
  // Gives the lost one's begin.
  base::Lsn lost_record(std::string_view body) {
    const base::Lsn before = previous_;
    const base::Lsn lost = record(body);
    const uint64_t kept = kPageBytes - lost.value % kPageBytes;
    bytes_.resize(lost.value - begin_.value + kept);
    position_ = {lost.value + kept};
    previous_ = before;
    overwrites_ = true;
    std::string named(2 + 16, '\0');
    named[0] = static_cast<char>(255);
    named[1] = 16;
    put(named, 2, lost.value);
    record(named, Rmgr::xlog, 0xD0, {});
    return lost;
  }
  void set_timeline(uint32_t timeline) { timeline_ = timeline; }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span{bytes_}); }
  char& at(base::Lsn lsn) { return bytes_[lsn.value - begin_.value]; }
  base::Lsn end() const { return position_; }

 private:
  template <typename Integer>
  static void put(std::string& bytes, size_t offset, Integer value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }
  static uint32_t crc(const std::string& bytes, size_t from, size_t to, uint32_t before) {
    auto* const data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    return crc32_iscsi(data + from, static_cast<int>(to - from), before);
  }
  void put_page_header(size_t remaining) {
    std::string header(page_header_bytes(position_, kSegmentBytes), '\0');
    const bool is_long = header.size() == kLongPageHeaderBytes;
    put(header, 0, format_.page_magic);
    put(header, 2,
        static_cast<uint16_t>((remaining != 0 ? 1 : 0) | (is_long ? 2 : 0) |
                              (overwrites_ ? format_.overwrite_flag : 0)));
    put(header, 4, timeline_);
    put(header, 8, position_.value);
    put(header, 16, static_cast<uint32_t>(remaining));
    if (is_long) {
      put(header, 24, kSystem);
      put(header, 32, kSegmentBytes);
      put(header, 36, kPageBytes);
    }
    overwrites_ = false;
    bytes_ += header;
    position_.value += header.size();
  }
  base::Lsn append(std::string_view record) {
    if (position_.value % kPageBytes == 0) put_page_header(0);
    const base::Lsn begin = position_;
    while (!record.empty()) {
      if (position_.value % kPageBytes == 0) put_page_header(record.size());
      const auto part = record.substr(0, kPageBytes - position_.value % kPageBytes);
      bytes_ += part;
      position_.value += part.size();
      record.remove_prefix(part.size());
    }
    while (position_.value % kRecordAlignment != 0) {
      bytes_ += '\0';
      ++position_.value;
    }
    previous_ = begin;
    return begin;
  }

  const WalFormat& format_;
  const base::Lsn begin_;
  base::Lsn position_;
  base::Lsn previous_{8};
  uint32_t timeline_ = 1;
  bool overwrites_ = false;
  std::string bytes_;
};

}  // namespace thalweg::wal
