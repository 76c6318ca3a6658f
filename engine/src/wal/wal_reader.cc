#include "wal/wal_reader.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <utility>

#include "wal/little_endian.h"
#include "wal/violation.h"

namespace thalweg::wal {

namespace {

// A record's header (XLogRecord).
constexpr size_t kXidOffset = 4;
constexpr size_t kPreviousOffset = 8;
constexpr size_t kInfoOffset = 16;
constexpr size_t kRmgrOffset = 17;
constexpr size_t kCrcOffset = 20;

// Records of the WAL itself (src/include/catalog/pg_control.h).
constexpr uint8_t kSwitch = 0x40;
constexpr uint8_t kOverwrite = 0xD0;

uint32_t crc_over(std::span<const std::byte> bytes, uint32_t before) {
  // The library takes a buffer that it does not change.
  auto* const data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  return crc32_iscsi(data, static_cast<int>(bytes.size()), before);
}

// CRC-32C over the body, then over the header up to the CRC (XLogInsertRecord, ValidXLogRecord).
uint32_t crc_of(std::span<const std::byte> record) {
  return ~crc_over(record.first(kCrcOffset), crc_over(record.subspan(kRecordHeaderBytes), 0xFFFFFFFF));
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

base::Lsn page_of(base::Lsn lsn) { return {lsn.value - lsn.value % kPageBytes}; }

}  // namespace

WalReader::WalReader(const WalReaderOptions& options)
    : options_(options), position_(page_of(options.start)), system_identifier_(options.system_identifier) {}

base::Result<const WalRecord*> WalReader::next() {
  if (failure_) return std::unexpected(*failure_);
  auto record = advance();
  if (!record) failure_ = record.error();
  return record;
}

std::span<const std::byte> WalReader::take(size_t bytes) {
  const auto taken = fed_.first(std::min(bytes, fed_.size()));
  fed_ = fed_.subspan(taken.size());
  position_.value += taken.size();
  return taken;
}

base::Result<const WalRecord*> WalReader::advance() {
  while (!fed_.empty()) {
    if (skipped_ != 0) {
      skipped_ -= take(skipped_).size();
      continue;
    }
    if (unused_ != 0) {
      THALWEG_TRY(skip_unused());
      continue;
    }
    if (position_.value % kPageBytes == 0 || !header_.empty()) {
      THALWEG_TRY(read_page_header());
      continue;
    }
    const size_t left = std::min(left_on_page(), fed_.size());
    if (foreign_ != 0) {
      foreign_ -= static_cast<uint32_t>(take(std::min<size_t>(foreign_, left)).size());
      if (foreign_ == 0) skipped_ = padding();
      continue;
    }
    if (!record_) {
      record_ = position_;
      assembled_.clear();
      if (left >= kRecordHeaderBytes) {
        if (is_unused(fed_)) continue;
        THALWEG_TRY(check_header(fed_));
        const auto length = load<uint32_t>(fed_, 0);
        if (length <= left) return finish(take(length));
      }
    }
    const size_t wanted = assembled_.size() < kRecordHeaderBytes ? kRecordHeaderBytes : load<uint32_t>(assembled_, 0);
    const auto part = take(std::min(wanted - assembled_.size(), left));
    const bool had_header = assembled_.size() >= kRecordHeaderBytes;
    assembled_.insert(assembled_.end(), part.begin(), part.end());
    if (!had_header && assembled_.size() == kRecordHeaderBytes) {
      if (is_unused(assembled_)) continue;
      THALWEG_TRY(check_header(assembled_));
    }
    if (assembled_.size() >= kRecordHeaderBytes && assembled_.size() == load<uint32_t>(assembled_, 0)) {
      return finish(assembled_);
    }
  }
  return nullptr;
}

base::Result<void> WalReader::read_page_header() {
  const base::Lsn address{position_.value - header_.size()};
  const size_t wanted = page_header_bytes(address, options_.segment_bytes);
  const auto part = take(wanted - header_.size());
  header_.insert(header_.end(), part.begin(), part.end());
  if (header_.size() < wanted) return {};
  THALWEG_ASSIGN(const PageHeader header, parse_page_header(header_, address));
  header_.clear();
  return turn_to(header);
}

base::Result<void> WalReader::turn_to(const PageHeader& header) {
  const bool is_first = page_.format == nullptr;
  if (!is_first && header.format != page_.format) {
    return violation(header.address,
                     fmt::format("At {} the WAL of PostgreSQL {} becomes that of PostgreSQL {}.",
                                 to_string(header.address), page_.format->version, header.format->version));
  }
  if (header.timeline < page_.timeline) {
    return violation(header.address, fmt::format("At {} the WAL goes back from timeline {} to {}.",
                                                 to_string(header.address), page_.timeline, header.timeline));
  }
  if (const uint32_t wanted = options_.timeline_at ? options_.timeline_at(header.address) : header.timeline;
      header.timeline != wanted) {
    return violation(header.address, fmt::format("The page at {} is of timeline {}, and the source was on {} there.",
                                                 to_string(header.address), header.timeline, wanted));
  }
  if (header.system_identifier != 0) {
    if (system_identifier_ == 0) system_identifier_ = header.system_identifier;
    if (header.system_identifier != system_identifier_) {
      return violation(header.address,
                       fmt::format("The segment at {} is of the system {}, not of {}.", to_string(header.address),
                                   header.system_identifier, system_identifier_));
    }
    if (header.segment_bytes != options_.segment_bytes) {
      return violation(header.address,
                       fmt::format("The segment at {} says that segments have {} bytes, not {}.",
                                   to_string(header.address), header.segment_bytes, options_.segment_bytes));
    }
  }
  page_ = header;
  if (is_first) {
    begin_at(header);
    return {};
  }
  if (foreign_ != 0) {
    if (header.overwrites_record) foreign_ = 0;
    if (header.remaining == foreign_) return {};
    return violation(header.address, fmt::format("The page at {} has {} bytes of an earlier record, not {}.",
                                                 to_string(header.address), header.remaining, foreign_));
  }
  if (!record_) {
    if (!header.continues_record && !header.overwrites_record) return {};
    return violation(header.address, fmt::format("The page at {} goes on with a record, and none was open.",
                                                 to_string(header.address)));
  }
  if (header.overwrites_record) {
    // The server ended in the midst of the record, and began anew here.
    overwritten_ = record_;
    record_ = {};
    return {};
  }
  // Of a record that spans pages the length at least is on the first: records are aligned, and it comes first.
  const uint32_t missing = load<uint32_t>(assembled_, 0) - static_cast<uint32_t>(assembled_.size());
  if (header.remaining != missing) {
    return violation(header.address,
                     fmt::format("The record at {} lacks {} bytes, and the page at {} says {}.", to_string(record_),
                                 missing, to_string(header.address), header.remaining));
  }
  return {};
}

void WalReader::begin_at(const PageHeader& header) {
  if (options_.start > position_) {
    skipped_ = options_.start.value - position_.value;
  } else {
    foreign_ = header.remaining;
    // A switch is a header without a body, of which this can be the end.
    may_follow_switch_ = foreign_ != 0 && foreign_ < kRecordHeaderBytes;
  }
}

// Where a record's header would be: zeros behind a switch of which only the end was read.
bool WalReader::is_unused(std::span<const std::byte> header) {
  if (!std::exchange(may_follow_switch_, false) || !is_zero(header.first(kRecordHeaderBytes))) return false;
  record_ = {};
  unused_ = options_.segment_bytes - position_.value % options_.segment_bytes;
  return true;
}

base::Result<void> WalReader::skip_unused() {
  const base::Lsn from = position_;
  const auto part = take(unused_);
  unused_ -= part.size();
  if (is_zero(part)) return {};
  return violation(from, fmt::format("Behind a switch of segments there is something other than zeros at {} or later.",
                                     to_string(from)));
}

base::Result<void> WalReader::check_header(std::span<const std::byte> header) const {
  const auto length = load<uint32_t>(header, 0);
  if (length < kRecordHeaderBytes || length > kRecordBytesMax) {
    return violation(record_, fmt::format("The record at {} would have {} bytes.", to_string(record_), length));
  }
  const base::Lsn previous{load<uint64_t>(header, kPreviousOffset)};
  if (previous_ ? previous != previous_ : previous >= record_) {
    return violation(record_, fmt::format("The record at {} follows one at {}, it says; it follows that at {}.",
                                          to_string(record_), to_string(previous), to_string(previous_)));
  }
  return {};
}

base::Result<const WalRecord*> WalReader::finish(std::span<const std::byte> bytes) {
  if (options_.checks_crc && load<uint32_t>(bytes, kCrcOffset) != crc_of(bytes)) {
    return violation(record_,
                     fmt::format("The record at {} is damaged: its CRC is not that of its bytes.", to_string(record_)));
  }
  current_ = {.begin = record_,
              .end = {},
              .previous = {load<uint64_t>(bytes, kPreviousOffset)},
              .xid = {load<uint32_t>(bytes, kXidOffset)},
              .rmgr = static_cast<Rmgr>(load<uint8_t>(bytes, kRmgrOffset)),
              .info = load<uint8_t>(bytes, kInfoOffset),
              .body = bytes.subspan(kRecordHeaderBytes)};
  const bool is_switch = current_.rmgr == Rmgr::xlog && (current_.info & kRmgrInfo) == kSwitch;
  // Behind a switch the rest of the segment is unused, page headers and all.
  skipped_ = is_switch ? (options_.segment_bytes - position_.value % options_.segment_bytes) % options_.segment_bytes
                       : padding();
  current_.end = {position_.value + skipped_};
  if (overwritten_) THALWEG_TRY(check_overwrite());
  previous_ = record_;
  record_ = {};
  return &current_;
}

// The first record after one that was never finished names it (xl_overwrite_contrecord). Its data are short: a mark, a
// length of one byte, the place of the lost one.
base::Result<void> WalReader::check_overwrite() {
  constexpr auto kShortData = std::byte{255};
  const auto body = current_.body;
  const bool names_one = current_.rmgr == Rmgr::xlog && (current_.info & kRmgrInfo) == kOverwrite &&
                         body.size() >= 2 + sizeof(uint64_t) && body[0] == kShortData;
  const base::Lsn named{names_one ? load<uint64_t>(body, 2) : 0};
  if (named != overwritten_) {
    return violation(current_.begin,
                     fmt::format("The record at {} was never finished, and the one at {} does not say so.",
                                 to_string(overwritten_), to_string(current_.begin)));
  }
  overwritten_ = {};
  return {};
}

}  // namespace thalweg::wal
