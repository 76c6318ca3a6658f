#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "spill/segment_reader.h"
#include "spill/spill_space.h"

// LCR frames on disk, in the order in which they were appended, over as many segments as it takes. One log per spilled
// transaction or lagging consumer: what is no longer needed goes at once, whatever else is spilled. Temporary: after a
// crash the WAL has everything again, so nothing is fsynced (docs/decisions/spill-segments.md).

namespace thalweg::spill {

class LogReader;

// Owner: one thread at a time (the apply reader, later the applier that runs the transaction), or a lock of its
// owner's. No file and no memory before the first frame; no descriptor between two calls.
class SpillLog {
 public:
  static constexpr uint64_t kSegmentBytes = uint64_t{16} << 20;  // after which a segment ends

  // `label` becomes part of the files' names, for whoever looks at the directory: letters, digits, '-' and '_' (others
  // become '_'). `space` outlives the log.
  SpillLog(SpillSpace& space, std::string_view label, uint64_t segment_bytes = kSegmentBytes);
  ~SpillLog();  // removes its segments
  SpillLog(const SpillLog&) = delete;
  SpillLog& operator=(const SpillLog&) = delete;

  // Appends one whole frame (which this process wrote: not checked again). Buffers up to a block. When it fails
  // (spill_limit_reached, disk_full, file_error) the log is as it was before, and the append may be tried again.
  base::Result<void> append(std::span<const std::byte> frame);
  // Writes what is buffered and gives the buffer's memory back. May be tried again like append.
  base::Result<void> flush();
  // flush, and no more appends.
  base::Result<void> finish();

  // Takes out what is buffered, as a run of whole frames: for a reader that has read all that is on disk, so that the
  // end of the log needs no disk.
  std::vector<std::byte> take_buffered();

  // A reader from the first segment that is left. The log outlives the reader.
  LogReader read() const;
  // Removes the segments before `number`, which every reader has passed.
  void drop_before(uint32_t number);

  uint64_t frames() const { return frames_; }          // appended
  uint64_t bytes() const { return bytes_; }            // of these frames
  uint64_t disk_bytes() const { return disk_bytes_; }  // of the segments that are left
  bool has_buffered() const { return !buffer_.empty(); }
  // Whether an append of so many bytes writes to the disk.
  bool would_write(size_t bytes) const { return buffer_.size() + bytes > kBlockRawBytesMax; }
  uint32_t first_segment() const { return segments_.empty() ? next_number_ : segments_.front().number; }

 private:
  friend class LogReader;
  struct Segment {
    uint32_t number;
    SpillSpace::Begun begun;
    uint64_t bytes = 0;   // in the file
    uint32_t blocks = 0;  // the end block not counted
    uint64_t frames = 0;
    bool ended = false;
  };

  std::filesystem::path path_of(uint32_t number) const;
  const Segment* find(uint32_t number) const;
  base::Result<void> make_room();
  base::Result<void> write_blocks(std::span<const std::byte> raw, uint64_t frames);
  base::Result<void> write_end(Segment& segment);
  base::Result<void> write(Segment& segment, std::span<const std::byte> bytes);
  void take_back(Segment& segment, uint64_t bytes, uint32_t blocks);
  void remove(const Segment& segment);

  SpillSpace& space_;
  const uint64_t id_;
  const std::string name_;
  const uint64_t segment_bytes_;
  std::deque<Segment> segments_;
  uint32_t next_number_ = 0;
  std::vector<std::byte> buffer_;  // whole frames, at most a block
  uint64_t buffered_frames_ = 0;
  std::vector<std::byte> packed_;  // a block on its way to the file
  uint64_t frames_ = 0;
  uint64_t bytes_ = 0;
  uint64_t disk_bytes_ = 0;
};

// Reads a log from where it began. The log may grow meanwhile; segments may go once the reader has passed them.
// Owner: the log's.
class LogReader {
 public:
  // The next run of whole, checked frames (SegmentReader); empty where there is none on disk now.
  base::Result<std::span<const std::byte>> next_run();
  // Segments before it have been passed.
  uint32_t segment() const { return number_; }
  uint64_t frames() const { return frames_; }  // given back so far

 private:
  friend class SpillLog;
  LogReader(const SpillLog& log, uint32_t number) : log_(&log), number_(number) {}

  const SpillLog* log_;
  uint32_t number_;
  std::optional<SegmentReader> segment_;
  uint64_t segment_frames_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace thalweg::spill
