#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

// Internal to dictionary/: files of integers as they lie in memory of a little-endian machine, and of texts with their
// length before them. An XXH3 of all that comes before it ends each.

namespace thalweg::dictionary {

// Owner: whoever writes.
class FileWriter {
 public:
  template <typename Number>
  FileWriter& put(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  FileWriter& text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  FileWriter& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  // With their sum behind them; the path's file is then the old one or the new one, whatever happens.
  base::Result<void> write_to(const std::filesystem::path& path);

 private:
  std::string bytes_;
};

// Behind the end everything is zero, and is_whole() false. Owner: whoever reads.
class FileReader {
 public:
  explicit FileReader(std::string_view bytes) : left_(bytes) {}
  template <typename Number>
  Number take() {
    Number value{};
    const std::string_view bytes = raw(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view raw(size_t count) {
    if (count > left_.size()) {
      left_ = {};
      whole_ = false;
      return {};
    }
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  std::string text() { return std::string{raw(take<uint32_t>())}; }
  bool is_whole() const { return whole_; }
  bool is_at_end() const { return whole_ && left_.empty(); }

 private:
  std::string_view left_;
  bool whole_ = true;
};

std::unexpected<base::Error> damaged_file(const std::filesystem::path& path);
// The bytes that write_to() wrote, without the sum. A file_error: it cannot be read, is damaged, or begins with another
// magic.
base::Result<std::string> read_summed_file(const std::filesystem::path& path, std::string_view magic);

}  // namespace thalweg::dictionary
