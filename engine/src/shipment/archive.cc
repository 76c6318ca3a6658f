#include "shipment/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <vector>

#include "shipment/archive_command.h"
#include "wal/wal_reader.h"

namespace thalweg::shipment {

namespace {

constexpr size_t kPortionBytes = size_t{1} << 20;
constexpr std::array kPackings = {Packing::none, Packing::gzip, Packing::zstd, Packing::lz4};

base::Result<uint64_t> bytes_of(const base::File& file, const std::string& name) {
  struct stat found{};
  if (fstat(file.descriptor(), &found) != 0) return std::unexpected(base::file_error(errno, "look at " + name));
  if (!S_ISREG(found.st_mode)) return archive_failed(fmt::format("The archive's {} is no file.", name));
  return static_cast<uint64_t>(found.st_size);
}

// The file is there, and nowhere else: it goes when it is closed.
base::Result<base::File> scratch(const std::filesystem::path& path) {
  THALWEG_ASSIGN(base::File file, base::File::open(path, O_RDWR | O_CREAT | O_TRUNC));
  std::error_code left;  // the next one is written over it
  std::filesystem::remove(path, left);
  return file;
}

// The reader blames the source for whatever it reads.
std::unexpected<base::Error> not_this_wal(const std::string& name, const base::Error& error) {
  return archive_failed(fmt::format("The archive's {} is not this source's WAL, or damaged: {}", name, error.message));
}

base::Result<void> check(base::File& file, const std::string& name, base::Lsn segment, const WalIdentity& identity) {
  THALWEG_ASSIGN(const uint64_t size, bytes_of(file, name));
  if (size != identity.segment_bytes) {
    return archive_failed(fmt::format("The archive's {} has {} bytes, and a segment of this source {}.", name, size,
                                      identity.segment_bytes));
  }
  wal::WalReader reader({.start = segment,
                         .segment_bytes = identity.segment_bytes,
                         .system_identifier = identity.system_identifier,
                         .timeline_at = identity.timeline_at()});
  std::vector<std::byte> bytes(kPortionBytes);
  while (true) {
    const auto count = file.read_some(bytes);
    if (!count) return archive_failed(count.error().message);
    if (*count == 0) return file.seek(0);
    reader.feed(std::span{bytes}.first(*count));
    while (true) {
      const auto record = reader.next();
      if (!record) return not_this_wal(name, record.error());
      if (*record == nullptr) break;
    }
  }
}

}  // namespace

std::string Archive::text() const {
  if (!place_.name.empty()) return place_.name;
  return place_.command.empty() ? place_.directory.string() : "that a command fetches from";
}

base::Result<std::optional<base::File>> Archive::fetch(base::Lsn segment, const WalIdentity& identity) const {
  return place_.command.empty() ? get_from_directory(segment, identity) : get_by_command(segment, identity);
}

// A whole file under one of the names is enough; one that is none is told where there is no other.
base::Result<std::optional<base::File>> Archive::get_from_directory(base::Lsn segment,
                                                                    const WalIdentity& identity) const {
  using std::filesystem::file_type;
  std::error_code error;
  const auto directory = std::filesystem::status(place_.directory, error).type();
  if (directory == file_type::none) {
    return archive_failed(fmt::format("The archive's directory {}: {}", place_.directory.string(), error.message()));
  }
  if (directory != file_type::directory) {
    return archive_failed(fmt::format("The archive's directory {} is not there.", place_.directory.string()));
  }
  std::optional<base::Error> failure;
  for (const Packing packing : kPackings) {
    const std::filesystem::path path = place_.directory / (identity.name_of(segment) + std::string{suffix_of(packing)});
    const auto type = std::filesystem::status(path, error).type();
    if (type == file_type::not_found) continue;
    base::Result<base::File> file = archive_failed(fmt::format("The archive's {}: {}", path.string(), error.message()));
    if (type != file_type::none) file = open(path, packing, segment, identity);
    if (file) return std::optional{std::move(*file)};
    if (file.error().code != base::ErrorCode::wal_archive_failed) return std::unexpected(file.error());
    if (!failure) failure = file.error();
  }
  if (failure) return std::unexpected(std::move(*failure));
  return std::optional<base::File>{};
}

base::Result<base::File> Archive::open(const std::filesystem::path& path, Packing packing, base::Lsn segment,
                                       const WalIdentity& identity) const {
  // One that is no regular file could keep the thread waiting.
  auto file = base::File::open(path, O_RDONLY | O_NONBLOCK);
  if (!file) return archive_failed(fmt::format("The archive's file cannot be read: {}", file.error().message));
  THALWEG_TRY(bytes_of(*file, path.string()));
  if (packing != Packing::none) {
    THALWEG_TRY(base::make_folders(folder_));
    THALWEG_ASSIGN(base::File unpacked, scratch(folder_ / path.filename()));
    const auto done = unpack(*file, packing, unpacked, identity.segment_bytes);
    if (!done && done.error().code != base::ErrorCode::protocol_violation) return std::unexpected(done.error());
    if (!done) return archive_failed(fmt::format("The archive's {}: {}", path.string(), done.error().message));
    THALWEG_TRY(unpacked.seek(0));
    *file = std::move(unpacked);
  }
  THALWEG_TRY(check(*file, path.string(), segment, identity));
  return file;
}

base::Result<std::optional<base::File>> Archive::get_by_command(base::Lsn segment, const WalIdentity& identity) const {
  const std::string name = identity.name_of(segment);
  THALWEG_TRY(base::make_folders(folder_));
  const std::filesystem::path path = folder_ / name;
  std::error_code left;
  std::filesystem::remove(path, left);
  const auto ran = run({.text = place_.command, .name = name, .path = path.string(), .stop = stop_});
  base::Result<std::optional<base::File>> out = std::optional<base::File>{};
  if (!ran) out = std::unexpected(ran.error());
  if (ran && *ran) {
    auto file = base::File::open(path, O_RDONLY | O_NONBLOCK);
    if (file) {
      out = std::optional{std::move(*file)};
    } else {
      out = archive_failed(
          fmt::format("The archive's command said that it fetched {}, and there is no such file.", name));
    }
  }
  std::filesystem::remove_all(folder_, left);  // what is open stays until it is closed
  if (out && *out) THALWEG_TRY(check(**out, name, segment, identity));
  return out;
}

}  // namespace thalweg::shipment
