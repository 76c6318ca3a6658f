#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace thalweg::base {

namespace {

std::unexpected<Error> failed(int error_number, std::string_view action) {
  return std::unexpected(file_error(error_number, action));
}

Result<void> sync_directory(const std::filesystem::path& directory) {
  THALWEG_ASSIGN(File opened, File::open(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY));
  return opened.sync();
}

Result<void> write_new_file(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  THALWEG_ASSIGN(File file, File::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  // A left-over of a crash may have other permissions, and open() applies the umask.
  if (fchmod(file.descriptor(), mode) != 0) return failed(errno, "set permissions of " + path.string());
  THALWEG_TRY(file.write_all(std::as_bytes(std::span(bytes))));
  return file.sync();
}

}  // namespace

Error file_error(int error_number, std::string_view action) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  return Error{.code = full ? ErrorCode::disk_full : ErrorCode::file_error,
               .message = std::string(action) + ": " + std::generic_category().message(error_number),
               .sqlstate = {},
               .table = {},
               .lsn = {},
               .xid = {}};
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = other.release();
    name_ = std::move(other.name_);
  }
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int File::release() { return std::exchange(descriptor_, -1); }

Result<File> File::open(const std::filesystem::path& path, int flags, mode_t mode) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return failed(errno, "open " + path.string());
  return File(descriptor, path.string());
}

Result<void> File::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return failed(errno, "write " + name_);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<size_t> File::read_some(std::span<std::byte> out) {
  size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::read(descriptor_, out.data() + filled, out.size() - filled);
    if (got < 0) {
      if (errno == EINTR) continue;
      return failed(errno, "read " + name_);
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

Result<void> File::seek(uint64_t at) {
  if (::lseek(descriptor_, static_cast<off_t>(at), SEEK_SET) < 0) return failed(errno, "seek in " + name_);
  return {};
}

Result<void> File::sync() {
  if (::fsync(descriptor_) != 0) return failed(errno, "fsync " + name_);
  return {};
}

Result<void> make_folders(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> missing;
  std::error_code error;
  for (auto at = path; !at.empty() && !std::filesystem::exists(at, error); at = at.parent_path()) missing.push_back(at);
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (::mkdir(folder->c_str(), 0700) != 0 && errno != EEXIST) return failed(errno, "create " + folder->string());
    THALWEG_TRY(sync_directory(folder->parent_path()));
  }
  return {};
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  std::filesystem::path fresh = path;
  fresh += ".new";
  if (auto written = write_new_file(fresh, bytes, mode); !written) {
    ::unlink(fresh.c_str());
    Error error = std::move(written).error();
    error.message += " (writing " + path.string() + ")";
    return std::unexpected(std::move(error));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(fresh.c_str());
    return failed(error_number, "rename to " + path.string());
  }
  return sync_directory(path.parent_path());
}

Result<std::string> read_file(const std::filesystem::path& path, size_t bytes_max) {
  THALWEG_ASSIGN(File file, File::open(path, O_RDONLY));
  std::string content;
  constexpr size_t kStep = size_t{64} << 10;
  while (true) {
    const size_t before = content.size();
    content.resize(before + kStep);
    THALWEG_ASSIGN(const size_t got, file.read_some(std::as_writable_bytes(std::span(content).subspan(before))));
    content.resize(before + got);
    if (content.size() > bytes_max) {
      return fail(ErrorCode::file_error, path.string() + " has more than " + std::to_string(bytes_max) + " bytes");
    }
    if (got < kStep) return content;
  }
}

}  // namespace thalweg::base
