#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/ids.h"
#include "shipment/segment_name.h"
#include "shipment/wal_identity.h"
#include "wal/wal_reader.h"

// The WAL of one source on this host's disk: a file for each segment, with the source's own bytes and name.

namespace thalweg::shipment {

struct StagingOptions {
  std::filesystem::path directory;  // this staging's alone
  WalIdentity identity = {};        // the source's
};

// The segments there, from the oldest on; none: there is no such directory.
base::Result<std::vector<SegmentName>> staged_segments(const std::filesystem::path& directory, uint32_t segment_bytes);

// Owner: one thread, which receives. Whole records do not change any more: others may read the files up to there.
class Staging {
 public:
  // Continues what an earlier one left: the newest segment's pages and records are checked, and what follows its last
  // whole record goes, but for a segment that is whole. WAL that the source has written since on another timeline goes
  // as well: callers have made sure that nobody has it. A protocol_violation: a segment is missing between two.
  // source_diverged: the source has never been on the timeline of what is staged.
  static base::Result<Staging> open(const StagingOptions& options);

  // Where the first segment begins; none: nothing is staged.
  base::Lsn begin() const;
  base::Lsn end() const { return end_; }  // the files have it up to here; none: nothing is staged
  // Of the byte that has to come next: end(), or the begin of its page, from which on the bytes that are there have to
  // come once more.
  base::Lsn next() const { return {end_.value - again_.size()}; }
  base::Lsn durable() const { return durable_; }  // on the disk up to here
  // Behind the last whole record: what follows may have to come again (cut_back).
  base::Lsn whole() const { return std::min(whole_, end_); }
  // Bytes received and not yet durable.
  uint64_t unsynced() const { return end_.value - durable_.value; }
  uint64_t bytes() const;  // on the disk
  const WalIdentity& identity() const { return options_.identity; }
  std::filesystem::path path_of(base::Lsn segment) const;

  // The first position of an empty one: a segment's begin.
  void begin_at(base::Lsn segment);
  // Another connection, or the archive, goes on with the page that end() is on.
  base::Result<void> compare_page();
  // The bytes at next(). Every page and record is checked as it comes, and nothing of a failed portion counts. A
  // protocol_violation: they are no WAL of this source. source_diverged: they are not the bytes that were staged
  // before.
  base::Result<void> append(std::span<const std::byte> bytes);
  // Gives up what is staged from there on, at whole() or behind, so that it comes again. Others must not have read it.
  base::Result<void> cut_back(base::Lsn to);
  // Makes all of it durable. After a failure this staging is used no more, and the segments that it may have damaged
  // are gone: the kernel may have dropped their pages, so that a second fsync would succeed without having written
  // them.
  base::Result<void> sync();
  // Removes the segments that end at `position` or before.
  base::Result<void> drop_before(base::Lsn position);

 private:
  explicit Staging(const StagingOptions& options) : options_(options) {}
  base::Lsn segment_of(base::Lsn lsn) const { return {lsn.value - lsn.value % options_.identity.segment_bytes}; }
  base::Result<void> find_segments();
  base::Result<void> follow(const SegmentName& name);
  base::Result<void> find_end();
  base::Result<void> find_whole();
  base::Result<void> shorten(base::Lsn segment);
  base::Result<void> open_segment();
  base::Result<void> write(std::span<const std::byte> bytes);
  base::Result<size_t> compare(std::span<const std::byte> bytes);
  std::unique_ptr<wal::WalReader> reader_from(base::Lsn start) const;
  base::Result<void> restart_reader();
  base::Result<void> read_again(base::Lsn from);
  base::Result<base::Lsn> read_records();

  StagingOptions options_;
  std::map<base::Lsn, uint64_t> segments_;  // bytes in the file, by the segment's begin
  base::File file_;                         // of the segment that end_ is in
  base::Lsn end_;
  base::Lsn durable_;
  base::Lsn whole_;
  std::unique_ptr<wal::WalReader> reader_;
  std::vector<std::byte> again_;  // bytes before end_ that have to come once more
};

}  // namespace thalweg::shipment
