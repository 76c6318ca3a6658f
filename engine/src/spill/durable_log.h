#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/ids.h"
#include "spill/repeated_tables.h"
#include "spill/segment_reader.h"
#include "spill/spill_space.h"
#include "telemetry/agent.h"

// LCR frames on disk that outlive the process: the backlog of one destination (docs/decisions/fan-out.md). A log is a
// folder with segments (docs/formats/spill.md) and a file `mark` with the place up to which they were synced. After a
// crash, bytes behind the mark do not count.

namespace thalweg::spill {

// Owner: one thread at a time, or a lock of its owner's. One writer, one reader.
class DurableLog {
 public:
  // Begins a log in `folder`, which must not exist. `id` goes into every segment. All transactions that commit from
  // `from` on will be appended whole. `space` outlives the log.
  static base::Result<std::unique_ptr<DurableLog>> create(SpillSpace& space, std::filesystem::path folder, uint64_t id,
                                                          base::Lsn from);
  // Opens the log of another process in `folder`, for reading only. Null if the folder holds nothing; then it is
  // removed. backlog_damaged if something is missing; next_run reports damage that is found later.
  static base::Result<std::unique_ptr<DurableLog>> open(SpillSpace& space, std::filesystem::path folder);
  ~DurableLog();  // the files stay
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;

  // Appends one whole frame; buffers up to a block. When append, end_segment or sync fail (spill_limit_reached,
  // disk_full, file_error), the log is as it was before, and they may come again; but see sync_failure.
  base::Result<void> append(std::span<const std::byte> frame);
  // The next append begins a new segment.
  base::Result<void> end_segment();
  // Once it returns, everything appended survives a crash. `position`: all that commits below it has been appended.
  base::Result<void> sync(base::Lsn position);
  // An fsync failed. It is unknown which pages the kernel dropped, and no later fsync reports them. So this log
  // promises nothing further and can only be read; what is not durable has to come again, in another log.
  const std::optional<base::Error>& sync_failure() const { return sync_failure_; }

  // The next run of complete, checked frames not yet read, including buffered ones, for which the limit does not count
  // (disk_full does); empty if there is none. The
  // descriptions that a segment repeats at its beginning come only to a reader that begins there.
  base::Result<std::span<const std::byte>> next_run();
  // The reader goes back to the first segment that is left.
  void rewind();
  // Whether the reader has had everything.
  bool read_all() const;

  // Removes the segments before `number`; none that the reader has not passed, nor the last one of the newest mark.
  // They hold nothing of a transaction that commits at `needed_from` or behind it. No effect while the disk does not
  // take that.
  void drop_before(uint32_t number, base::Lsn needed_from);
  // Removes all of it from the disk. Nothing else may be called afterwards.
  void remove();

  uint64_t id() const { return id_; }
  base::Lsn from() const { return from_; }      // rises as segments go
  base::Lsn synced() const { return synced_; }  // `from` until the first sync
  // The segment that takes the next frame, and its bytes on disk.
  uint32_t segment() const { return is_open() ? next_number_ - 1 : next_number_; }
  uint64_t segment_bytes() const { return is_open() ? segments_.back().bytes : 0; }
  // Frames appended and not read; changes: those of them that lcr::is_change. Any thread may call these.
  uint64_t frames_left() const { return frames_left_.get(); }
  uint64_t changes_left() const { return changes_left_.get(); }
  bool has_buffered() const { return !buffer_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Count {
    uint64_t frames = 0;
    uint64_t changes = 0;
    void add(const Count& other);
    void subtract(const Count& other);
  };
  static Count count(std::span<const std::byte> run);
  void publish();
  struct Segment {
    uint32_t number;
    SpillSpace::Begun begun;
    uint64_t bytes = 0;
    uint32_t blocks = 0;
    Count count = {};
    bool ended = false;
  };

  DurableLog(SpillSpace& space, std::filesystem::path folder, uint64_t id, base::Lsn from);
  std::filesystem::path path_of(uint32_t number) const;
  const Segment* find(uint32_t number) const;
  base::Result<void> begin();
  bool is_open() const { return !segments_.empty() && !segments_.back().ended; }
  base::Result<void> flush(bool above_limit = false);
  base::Result<void> begin_segment();
  base::Result<void> write(Segment& segment, std::span<const std::byte> bytes, bool above_limit = false);
  base::Result<void> keep(base::Result<void> synced);
  base::Error unreadable(base::Error error) const;
  base::Result<void> write_mark(base::Lsn position);
  base::Result<void> begin_later(base::Lsn from);
  void remove(const Segment& segment);

  SpillSpace& space_;
  const std::filesystem::path folder_;
  const uint64_t id_;
  base::Lsn from_;
  base::Lsn synced_;
  uint64_t mark_sequence_ = 0;
  base::File mark_;
  // The engine that opens the log looks for the last segment of its mark, which may be this one or that of a later mark
  // whose sync failed: no segment from here on is dropped.
  std::optional<uint32_t> marked_last_;
  base::File file_;           // of the segment that is being written
  bool dirty_ = false;        // written and not synced
  bool folder_dirty_ = true;  // a file came
  std::optional<base::Error> sync_failure_;
  std::deque<Segment> segments_;
  uint32_t next_number_ = 0;
  std::vector<std::byte> buffer_;  // whole frames, at most a block
  Count buffered_;
  std::vector<std::byte> packed_;
  Count kept_;  // in the segments that are left, and buffered

  uint32_t read_number_ = 0;
  std::optional<SegmentReader> reader_;
  RepeatedTables repeated_tables_;
  Count read_;                                     // of those
  telemetry::Counter frames_left_, changes_left_;  // writer: the owner
};

}  // namespace thalweg::spill
