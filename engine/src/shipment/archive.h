#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/ids.h"
#include "shipment/wal_identity.h"

// Segments of a source's WAL that its archive_command, or what takes its place, has put away.

namespace thalweg::shipment {

// One of the two is set.
struct ArchivePlace {
  std::filesystem::path directory = {};  // a file for each segment: NAME, NAME.gz, NAME.zst or NAME.lz4
  std::string command = {};              // fetches one, as restore_command (archive_command.h)

  bool operator==(const ArchivePlace&) const = default;
};

// Owner: one thread.
class Archive {
 public:
  // `folder`: of what is fetched, this archive's alone, made when it is needed; nothing stays there. `stop`: ends a
  // command, by any thread.
  Archive(ArchivePlace place, std::filesystem::path folder, const std::atomic<bool>* stop)
      : place_(std::move(place)), folder_(std::move(folder)), stop_(stop) {}

  // The whole segment that begins there, to be read from its beginning; none: the archive does not have it, or not all
  // of it yet. Every page and record of it was checked. Fails with wal_archive_failed where the place cannot be used or
  // has something else under the segment's name.
  base::Result<std::optional<base::File>> fetch(base::Lsn segment, const WalIdentity& identity) const;

 private:
  base::Result<std::optional<base::File>> get(const std::string& name, uint32_t segment_bytes) const;
  base::Result<std::optional<base::File>> get_from_directory(const std::string& name, uint32_t segment_bytes) const;
  base::Result<std::optional<base::File>> get_by_command(const std::string& name) const;

  ArchivePlace place_;
  std::filesystem::path folder_;
  const std::atomic<bool>* stop_;
};

}  // namespace thalweg::shipment
