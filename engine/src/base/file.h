#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

// Files of the operating system, as values and Results. A full disk or quota is disk_full, everything else file_error.

namespace thalweg::base {

// Owns one file descriptor. Owner: one thread at a time. Moves; closes on destruction.
class File {
 public:
  File() = default;
  explicit File(int descriptor, std::string name = "a file") : descriptor_(descriptor), name_(std::move(name)) {}
  File(File&& other) noexcept : descriptor_(other.release()), name_(std::move(other.name_)) {}
  File& operator=(File&& other) noexcept;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // `flags` and `mode` as open(2); O_CLOEXEC is added.
  static Result<File> open(const std::filesystem::path& path, int flags, mode_t mode = 0600);

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int release();

  // Writes all bytes, through partial writes and interruptions.
  Result<void> write_all(std::span<const std::byte> bytes);
  // Reads until `out` is full or the file ends; how many bytes came.
  Result<size_t> read_some(std::span<std::byte> out);
  // The place of the next read or write, from the file's beginning.
  Result<void> seek(uint64_t at);
  Result<void> sync();

 private:
  int descriptor_ = -1;
  std::string name_;  // for messages
};

// The error for `error_number` (errno) of `action` ("write /a/b").
Error file_error(int error_number, std::string_view action);

// The folder, and those above it that are missing, such that a loss of power does not take them away. Mode 0700.
Result<void> make_folders(const std::filesystem::path& path);

// Replaces `path` by `bytes` with permissions `mode`, so that after a crash it is either the old file or the new one:
// writes `path`.new, fsyncs it, renames it, fsyncs the directory. One writer per path at a time.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode);

// The whole file. Refuses more than `bytes_max`.
Result<std::string> read_file(const std::filesystem::path& path, size_t bytes_max = size_t{64} << 20);

}  // namespace thalweg::base
