#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/ids.h"
#include "shipment/unpack.h"
#include "shipment/wal_identity.h"

// Segments of a source's WAL that its archive_command, or what takes its place, has put away.

namespace thalweg::shipment {

// Either a directory or a command.
struct ArchivePlace {
  std::filesystem::path directory = {};  // a file for each segment: NAME, NAME.gz, NAME.zst or NAME.lz4
  std::string command = {};              // fetches one, as restore_command (archive_command.h)
  std::string name = {};                 // the administrator's, for messages

  bool operator==(const ArchivePlace&) const = default;
};

// Owner: one thread.
class Archive {
 public:
  // `folder`: of what is fetched, this archive's alone, made when it is needed; nothing stays there. `stop`: ends a
  // command, by any thread.
  Archive(ArchivePlace place, std::filesystem::path folder, const std::atomic<bool>* stop)
      : place_(std::move(place)), folder_(std::move(folder)), stop_(stop) {}

  // The whole segment that begins there, to be read from its beginning; none: the archive does not have it. Every page
  // and record of it was checked. Fails with wal_archive_failed where the place cannot be used, or has only something
  // else under the segment's name, or a part of it; with engine_stopping after a stop.
  base::Result<std::optional<base::File>> fetch(base::Lsn segment, const WalIdentity& identity) const;
  // For messages: the administrator's name, or the place.
  std::string text() const;

 private:
  base::Result<std::optional<base::File>> get_from_directory(base::Lsn segment, const WalIdentity& identity) const;
  base::Result<std::optional<base::File>> get_by_command(base::Lsn segment, const WalIdentity& identity) const;
  base::Result<base::File> open(const std::filesystem::path& path, Packing packing, base::Lsn segment,
                                const WalIdentity& identity) const;

  ArchivePlace place_;
  std::filesystem::path folder_;
  const std::atomic<bool>* stop_;
};

}  // namespace thalweg::shipment
