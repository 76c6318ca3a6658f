#include "shipment/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <vector>

#include "shipment/archive_command.h"
#include "shipment/unpack.h"
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
  wal::WalReader reader({.start = segment,
                         .segment_bytes = identity.segment_bytes,
                         .system_identifier = identity.system_identifier,
                         .timeline_at = identity.timeline_at()});
  std::vector<std::byte> bytes(kPortionBytes);
  while (true) {
    THALWEG_ASSIGN(const size_t count, file.read_some(bytes));
    if (count == 0) return file.seek(0);
    reader.feed(std::span{bytes}.first(count));
    while (true) {
      const auto record = reader.next();
      if (!record) return not_this_wal(name, record.error());
      if (*record == nullptr) break;
    }
  }
}

}  // namespace

base::Result<std::optional<base::File>> Archive::fetch(base::Lsn segment, const WalIdentity& identity) const {
  const std::string name = identity.name_of(segment);
  THALWEG_ASSIGN(std::optional<base::File> file, get(name, identity.segment_bytes));
  if (!file) return file;
  THALWEG_ASSIGN(const uint64_t bytes, bytes_of(*file, name));
  // A copy into the archive may be under way.
  if (bytes < identity.segment_bytes) return std::optional<base::File>{};
  if (bytes > identity.segment_bytes) {
    return archive_failed(fmt::format("The archive's {} has {} bytes, and a segment of this source {}.", name, bytes,
                                      identity.segment_bytes));
  }
  THALWEG_TRY(check(*file, name, segment, identity));
  return file;
}

base::Result<std::optional<base::File>> Archive::get(const std::string& name, uint32_t segment_bytes) const {
  return place_.command.empty() ? get_from_directory(name, segment_bytes) : get_by_command(name);
}

base::Result<std::optional<base::File>> Archive::get_from_directory(const std::string& name,
                                                                    uint32_t segment_bytes) const {
  std::error_code missing;
  if (!std::filesystem::is_directory(place_.directory, missing)) {
    return archive_failed(fmt::format("The archive's directory {} is not there.", place_.directory.string()));
  }
  for (const Packing packing : kPackings) {
    const std::filesystem::path path = place_.directory / (name + std::string{suffix_of(packing)});
    if (!std::filesystem::exists(path, missing)) continue;
    // One that is no regular file could keep the thread waiting.
    auto packed = base::File::open(path, O_RDONLY | O_NONBLOCK);
    if (!packed) return archive_failed(packed.error().message);
    THALWEG_TRY(bytes_of(*packed, path.string()));
    if (packing == Packing::none) return std::optional{std::move(*packed)};
    THALWEG_TRY(base::make_folders(folder_));
    THALWEG_ASSIGN(base::File file, scratch(folder_ / name));
    const auto unpacked = unpack(*packed, packing, file, segment_bytes);
    if (!unpacked && unpacked.error().code != base::ErrorCode::protocol_violation) {
      return std::unexpected(unpacked.error());
    }
    if (!unpacked) continue;  // whoever packs it may be at it
    THALWEG_TRY(file.seek(0));
    return std::optional{std::move(file)};
  }
  return std::optional<base::File>{};
}

base::Result<std::optional<base::File>> Archive::get_by_command(const std::string& name) const {
  THALWEG_TRY(base::make_folders(folder_));
  const std::filesystem::path path = folder_ / name;
  std::error_code left;
  std::filesystem::remove(path, left);
  const auto ran = run({.text = place_.command, .name = name, .path = path.string(), .stop = stop_});
  const bool has = ran && *ran;
  base::Result<std::optional<base::File>> out = std::optional<base::File>{};
  if (!ran) out = std::unexpected(ran.error());
  if (has) {
    auto file = base::File::open(path, O_RDONLY | O_NONBLOCK);
    if (file) {
      out = std::optional{std::move(*file)};
    } else {
      out = archive_failed(
          fmt::format("The archive's command said that it fetched {}, and there is no such file.", name));
    }
  }
  std::filesystem::remove_all(folder_, left);  // what is open stays until it is closed
  return out;
}

}  // namespace thalweg::shipment
