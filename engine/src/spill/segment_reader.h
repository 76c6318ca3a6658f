#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "spill/segment_format.h"

namespace thalweg::spill {

// Reads one segment from its start, run by run. A run is a block's frames, or one frame that is larger than a block.
// Holds one block, or one frame where that is larger. Everything it gives back went through checksums and
// FrameView::decode: a damaged or torn segment is corrupt_frame, never wrong data.
// Owner: one thread.
class SegmentReader {
 public:
  // Fails with corrupt_frame where the file is no segment of this version, or not the one that `expected` names.
  static base::Result<SegmentReader> open(base::File file, const SegmentId* expected = nullptr);

  SegmentId id() const { return id_; }
  // The next run: whole, checked frames, valid until the next call; empty at the end block. Fails with corrupt_frame
  // where the file ends without one. After a failed read (file_error) the next call reads the same run again.
  base::Result<std::span<const std::byte>> next_run();
  // Blocks read so far, the end block not counted.
  uint32_t blocks() const { return number_; }

 private:
  explicit SegmentReader(base::File file) : file_(std::move(file)) {}
  base::Result<std::span<const std::byte>> read_run();
  // Appends the next block to the run; false at the end block.
  base::Result<bool> append_block();
  base::Result<void> check_frames() const;

  base::File file_;
  SegmentId id_;
  uint32_t number_ = 0;
  bool ended_ = false;
  uint64_t offset_ = 0;        // behind what was read
  std::vector<uint64_t> run_;  // words, so that frames lie aligned
  size_t run_bytes_ = 0;
  std::vector<std::byte> stored_;
};

}  // namespace thalweg::spill
