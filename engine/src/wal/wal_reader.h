#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "wal/page_header.h"
#include "wal/wal_record.h"

// Cuts WAL into its records, and checks every page and record on the way: magic, address, timeline and identifier of
// pages; length, chain to the one before and CRC of records (PostgreSQL: src/backend/access/transam/xlogreader.c).

namespace thalweg::wal {

struct WalReaderOptions {
  // A record's begin, or that of a page; then the first record is the first one that begins on it or behind it.
  base::Lsn start;
  uint32_t segment_bytes = 16U << 20;  // the source's wal_segment_size
  uint64_t system_identifier = 0;      // the source's; 0: that of the first segment that says it
  // The timeline of what the source wrote there: a page is of the one of its first byte. Empty: of any that does not
  // fall.
  std::function<uint32_t(base::Lsn)> timeline_at = {};
  bool checks_crc = true;  // for fuzzing without
};

// Owner: one thread. Bytes are fed in any portions, from the begin of the page on that has the start; a record that
// lies whole in a portion and on one page is not copied. Memory grows with the bytes that were received of a record,
// never by its announced length. Nothing follows an error.
class WalReader {
 public:
  explicit WalReader(const WalReaderOptions& options);

  // The bytes that follow those fed before. They stay the caller's, and stay as they are until the next call; before
  // it, next() has been called until it gave none.
  void feed(std::span<const std::byte> bytes) { fed_ = bytes; }
  // The next record, valid until the next call. Null: all bytes are used up. A protocol_violation: this is no WAL, or
  // it is damaged, or another server's.
  base::Result<const WalRecord*> next();

  // Null before the first page.
  const WalFormat* format() const { return page_.format; }
  uint32_t timeline() const { return page_.timeline; }
  base::Lsn position() const { return position_; }  // of the first byte that was not used yet

 private:
  std::span<const std::byte> take(size_t bytes);
  // Bytes up to where a record may begin.
  uint64_t padding() const { return (kRecordAlignment - position_.value % kRecordAlignment) % kRecordAlignment; }
  size_t left_on_page() const { return kPageBytes - position_.value % kPageBytes; }
  base::Result<void> read_page_header();
  base::Result<void> turn_to(const PageHeader& header);
  void begin_at(const PageHeader& header);
  base::Result<void> check_header(std::span<const std::byte> header) const;
  bool is_unused(std::span<const std::byte> header);
  base::Result<void> skip_unused();
  base::Result<const WalRecord*> finish(std::span<const std::byte> bytes);
  base::Result<void> check_overwrite();
  base::Result<const WalRecord*> advance();

  const WalReaderOptions options_;
  std::span<const std::byte> fed_;
  base::Lsn position_;
  uint64_t system_identifier_;
  PageHeader page_;
  std::vector<std::byte> header_;     // of a page, of which a part has come
  std::vector<std::byte> assembled_;  // of a record that is not whole in one portion and on one page
  base::Lsn record_;                  // the begin of the record that is being assembled; none: no record is
  base::Lsn previous_;                // the begin of the last one
  base::Lsn overwritten_;             // the begin of one that was never finished, which the next one has to name
  uint32_t foreign_ = 0;              // bytes to come of a record that began before the start
  uint64_t skipped_ = 0;              // bytes to come that nobody uses: padding, what lies before the start
  bool may_follow_switch_ = false;    // the next record: the foreign one before it may have been a switch
  uint64_t unused_ = 0;               // bytes to come behind such a switch: zeros
  std::optional<base::Error> failure_;
  WalRecord current_;
};

}  // namespace thalweg::wal
