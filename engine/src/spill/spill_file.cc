#include "spill/spill_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace thalweg::spill {

namespace {

using base::ErrorCode;
using base::Result;

constexpr std::string_view kPrefix = "thalweg-spill-";
constexpr std::array<char, 8> kMagic{'T', 'H', 'W', 'S', 'P', 'I', 'L', '1'};
constexpr size_t kBufferBytes = size_t{256} << 10;

std::string file_safe(std::string_view label) {
  std::string out(label.substr(0, 64));
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return out;
}

base::Error naming(base::Error error, const std::filesystem::path& path) {
  error.message += " (spill file " + path.string() + ")";
  return error;
}

}  // namespace

SpillFile::SpillFile(base::File file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {
  buffer_.reserve(kBufferBytes);
  const auto magic = std::as_bytes(std::span(kMagic));
  buffer_.assign(magic.begin(), magic.end());
}

Result<SpillFile> SpillFile::create(const std::filesystem::path& directory, std::string_view label) {
  std::string pattern = (directory / (std::string(kPrefix) + file_safe(label) + "-XXXXXX")).string();
  const int descriptor = ::mkostemp(pattern.data(), O_CLOEXEC);  // mode 0600
  if (descriptor < 0) return std::unexpected(base::file_error(errno, "create a spill file in " + directory.string()));
  return SpillFile(base::File(descriptor), pattern);
}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  if (this != &other) {
    SpillFile doomed(std::move(*this));  // deletes the file that this one held
    file_ = std::move(other.file_);
    path_ = std::move(other.path_);
    buffer_ = std::move(other.buffer_);
    written_ = other.written_;
    bytes_ = other.bytes_;
    frames_ = other.frames_;
    finished_ = other.finished_;
  }
  return *this;
}

SpillFile::~SpillFile() {
  if (!path_.value.empty()) ::unlink(path_.value.c_str());
}

Result<void> SpillFile::append(std::span<const std::byte> frame) {
  assert(!finished_ && frame.size() >= lcr::kFrameHeaderBytes && frame.size() % lcr::kFrameAlignment == 0);
  if (buffer_.size() + frame.size() > kBufferBytes) THALWEG_TRY(write_buffer());
  if (frame.size() > kBufferBytes) {
    // Straight to the file; `written_` grows only when all of it is there.
    if (auto written = file_.write_all(frame); !written) {
      base::Error error = naming(std::move(written).error(), path());
      static_cast<void>(::ftruncate(file_.descriptor(), static_cast<off_t>(written_)));
      ::lseek(file_.descriptor(), static_cast<off_t>(written_), SEEK_SET);
      return std::unexpected(std::move(error));
    }
    written_ += frame.size();
  } else {
    buffer_.insert(buffer_.end(), frame.begin(), frame.end());
  }
  bytes_ += frame.size();
  ++frames_;
  return {};
}

Result<void> SpillFile::write_buffer() {
  if (auto written = file_.write_all(buffer_); !written) {
    // Take back what a partial write left, and keep the buffer: the next try starts at the same place.
    static_cast<void>(::ftruncate(file_.descriptor(), static_cast<off_t>(written_)));
    ::lseek(file_.descriptor(), static_cast<off_t>(written_), SEEK_SET);
    return std::unexpected(naming(std::move(written).error(), path()));
  }
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<void> SpillFile::finish() {
  if (finished_) return {};
  THALWEG_TRY(write_buffer());
  finished_ = true;
  buffer_ = {};
  return {};
}

Result<SpillReader> SpillFile::read() const {
  assert(finished_);
  THALWEG_ASSIGN(base::File file, base::File::open(path(), O_RDONLY));
  std::array<char, kMagic.size()> magic{};
  THALWEG_ASSIGN(const size_t got, file.read_some(std::as_writable_bytes(std::span(magic))));
  if (got != magic.size() || magic != kMagic) {
    return base::fail(ErrorCode::corrupt_frame, path().string() + " is not a spill file of this version");
  }
  return SpillReader(std::move(file), frames_, bytes_);
}

SpillReader::SpillReader(base::File file, uint64_t frames, uint64_t bytes)
    : file_(std::move(file)), buffer_(kBufferBytes / sizeof(uint64_t)), frames_left_(frames), bytes_left_(bytes) {}

// Makes at least `bytes_min` unread bytes available at from_, or fails because the file ends before.
Result<void> SpillReader::fill(size_t bytes_min) {
  if (to_ - from_ >= bytes_min) return {};
  auto memory = std::as_writable_bytes(std::span(buffer_));
  std::memmove(memory.data(), memory.data() + from_, to_ - from_);
  to_ -= from_;
  from_ = 0;
  if (bytes_min > memory.size()) {
    buffer_.resize((bytes_min + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    memory = std::as_writable_bytes(std::span(buffer_));
  }
  const size_t wanted = std::min<uint64_t>(memory.size() - to_, bytes_left_);
  THALWEG_ASSIGN(const size_t got, file_.read_some(memory.subspan(to_, wanted)));
  to_ += got;
  bytes_left_ -= got;
  if (to_ < bytes_min) return base::fail(ErrorCode::corrupt_frame, "a spill file ends too early");
  return {};
}

Result<std::optional<lcr::FrameView>> SpillReader::next() {
  if (frames_left_ == 0) {
    if (bytes_left_ != 0 || from_ != to_)
      return base::fail(ErrorCode::corrupt_frame, "bytes after a spill file's last frame");
    return std::nullopt;
  }
  THALWEG_TRY(fill(sizeof(uint32_t)));
  const auto unread = [&] { return std::as_bytes(std::span(buffer_)).subspan(from_, to_ - from_); };
  THALWEG_ASSIGN(const size_t length, lcr::frame_length(unread()));
  // Checked against what the file still holds before memory is taken for it.
  if (length > (to_ - from_) + bytes_left_) return base::fail(ErrorCode::corrupt_frame, "a spill file ends too early");
  THALWEG_TRY(fill(length));
  THALWEG_ASSIGN(const lcr::FrameView frame, lcr::FrameView::decode(unread()));
  from_ += length;
  --frames_left_;
  return frame;
}

Result<size_t> remove_leftovers(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return std::unexpected(base::file_error(error.value(), "create " + directory.string()));
  std::filesystem::directory_iterator entries(directory, error);
  if (error) return std::unexpected(base::file_error(error.value(), "list " + directory.string()));
  size_t removed = 0;
  for (const std::filesystem::directory_iterator end; entries != end; entries.increment(error)) {
    if (error) return std::unexpected(base::file_error(error.value(), "list " + directory.string()));
    if (!entries->path().filename().string().starts_with(kPrefix)) continue;
    if (::unlink(entries->path().c_str()) != 0) {
      return std::unexpected(base::file_error(errno, "remove " + entries->path().string()));
    }
    ++removed;
  }
  return removed;
}

}  // namespace thalweg::spill
