#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/ids.h"
#include "shipment/archive.h"
#include "shipment/wal_identity.h"

// The staged segments, read from one position on while they grow.

namespace thalweg::shipment {

struct StagedWalOptions {
  std::filesystem::path directory;
  WalIdentity identity = {};
  const Archive* archive = nullptr;  // has what was dropped from the directory. Null: nothing that is needed is
};

// Owner: one thread, another one than the staging's. Received WAL is in the files, and stays as it is.
class StagedWal {
 public:
  static constexpr size_t kPortionBytes = size_t{1} << 20;

  StagedWal(StagedWalOptions options, base::Lsn from) : options_(std::move(options)), position_(from) {}

  // The next bytes before `end`, a portion at most; none: the position is there. They are valid until the next call.
  // Fails with position_gap where a segment is missing and there is no archive; with wal_archive_failed where that
  // cannot give it now; with engine_stopping after a stop.
  base::Result<std::span<const std::byte>> read(base::Lsn end);
  base::Lsn position() const { return position_; }  // of the next byte

 private:
  base::Result<void> open();
  base::Result<base::File> find(base::Lsn segment) const;

  const StagedWalOptions options_;
  base::Lsn position_;
  base::File file_;  // of the segment that the position is in
  std::vector<std::byte> bytes_;
};

}  // namespace thalweg::shipment
