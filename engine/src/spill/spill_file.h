#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "lcr/frame.h"

// Apply spill: the LCRs of one transaction that the apply reader moved from memory to disk. Temporary: after a crash
// the WAL has them again, so nothing is fsynced. The format is docs/formats/spill-file.md.

namespace thalweg::spill {

class SpillReader;

// One spill file: frames are appended, then it is finished, then it may be read, once or several times. It is deleted
// on destruction. Owner: one thread at a time (the apply reader, later the applier that runs the transaction).
class SpillFile {
 public:
  // Creates an empty file in `directory`, readable by this user only. `label` becomes part of its name, for whoever
  // looks at the directory: letters, digits, '-' and '_' (others become '_').
  static base::Result<SpillFile> create(const std::filesystem::path& directory, std::string_view label);

  SpillFile(SpillFile&&) noexcept = default;
  SpillFile& operator=(SpillFile&& other) noexcept;
  ~SpillFile();

  // Appends one whole frame (which this process wrote: not checked again). Buffered. disk_full leaves the file as it
  // was after the last frame that was appended with success: the append may be tried again. Not after finish().
  base::Result<void> append(std::span<const std::byte> frame);
  // Writes what is buffered. The file can be read from now on. May be tried again after disk_full.
  base::Result<void> finish();
  // Streams the frames back in their order. The SpillFile must outlive the reader and not move meanwhile.
  base::Result<SpillReader> read() const;

  uint64_t frames() const { return frames_; }
  uint64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_.value; }

 private:
  // A path that is empty after a move, so that only one destructor deletes the file.
  struct OwnedPath {
    std::filesystem::path value;
    OwnedPath() = default;
    explicit OwnedPath(std::filesystem::path path) : value(std::move(path)) {}
    OwnedPath(OwnedPath&& other) noexcept { value.swap(other.value); }
    OwnedPath& operator=(OwnedPath&& other) noexcept {
      value.swap(other.value);
      return *this;
    }
  };

  SpillFile(base::File file, std::filesystem::path path);
  base::Result<void> write_buffer();

  base::File file_;
  OwnedPath path_;
  std::vector<std::byte> buffer_;  // frames that are not written yet, at most 256 KiB
  uint64_t written_ = 0;           // bytes in the file
  uint64_t bytes_ = 0;             // bytes appended, header not counted
  uint64_t frames_ = 0;
  bool finished_ = false;
};

// Reads a finished spill file from its start. Holds one buffer of 256 KiB, or of one frame where that is larger.
// Owner: one thread.
class SpillReader {
 public:
  // The next frame, checked; valid until the next call. nullopt at the end, which is reached only if as many frames
  // came as were appended. corrupt_frame when the file is not what was written.
  base::Result<std::optional<lcr::FrameView>> next();

 private:
  friend class SpillFile;
  SpillReader(base::File file, uint64_t frames, uint64_t bytes);
  base::Result<void> fill(size_t bytes_min);

  base::File file_;
  std::vector<uint64_t> buffer_;  // words, so that frames lie aligned
  size_t from_ = 0;               // unread bytes are [from_, to_) of the buffer
  size_t to_ = 0;
  uint64_t frames_left_;
  uint64_t bytes_left_;  // in the file, not yet in the buffer
};

// Removes the spill files that a process which no longer runs left in `directory`, which is created if it is missing.
// Call it at start, when no other engine uses the directory. How many were removed.
base::Result<size_t> remove_leftovers(const std::filesystem::path& directory);

}  // namespace thalweg::spill
