#include "dictionary/file_bytes.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "base/file.h"

namespace thalweg::dictionary {

namespace {

constexpr size_t kBytesMax = size_t{4} << 30;  // twenty million attributes

}  // namespace

base::Result<void> FileWriter::write_to(const std::filesystem::path& path) {
  put(static_cast<uint64_t>(XXH3_64bits(bytes_.data(), bytes_.size())));
  constexpr mode_t kMode = 0600;
  return base::write_file_atomically(path, bytes_, kMode);
}

std::unexpected<base::Error> damaged_file(const std::filesystem::path& path) {
  return base::fail(base::ErrorCode::file_error, fmt::format("{} is damaged.", path.string()), base::ErrorSide::engine);
}

base::Result<std::string> read_summed_file(const std::filesystem::path& path, std::string_view magic) {
  THALWEG_ASSIGN(std::string bytes, base::read_file(path, kBytesMax));
  uint64_t sum = 0;
  if (bytes.size() < magic.size() + sizeof sum) return damaged_file(path);
  const std::string_view content = std::string_view{bytes}.substr(0, bytes.size() - sizeof sum);
  std::memcpy(&sum, bytes.data() + content.size(), sizeof sum);
  if (sum != XXH3_64bits(content.data(), content.size()) || !content.starts_with(magic)) return damaged_file(path);
  bytes.resize(content.size());
  return bytes;
}

}  // namespace thalweg::dictionary
