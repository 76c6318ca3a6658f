#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/wal/wal_folder.h"

namespace thalweg::search {

// The WAL of a stream's source on the disk, as far as it can be searched.
struct KeptWal {
  base::Lsn from;              // what commits there or later can be found, whole
  base::UnixMicros from_time;  // of a commit before it; none: not known
  base::Lsn until;
  uint64_t bytes = 0;
  uint32_t timeline = 0;  // of the newest segment
  uint32_t segment_bytes = 0;
  std::vector<capture::MiningPosition> positions = {};  // rising: where a search can begin
  std::vector<base::Lsn> dictionaries = {};             // rising
};

// Fails with search_refused where there is nothing yet.
base::Result<KeptWal> find_kept(const capture::WalFolder& folder);

// Commits of one server come nearly in the order of their times. Its clock may have been set back by less than this.
constexpr std::chrono::minutes kClockMargin{5};

// Where mining begins to find what commits at `from` or later, and in `from_time` or later.
struct Begin {
  base::Lsn dictionary;  // its position
  base::Lsn from;        // what commits before it would not be whole
};
Begin begin_of(const KeptWal& kept, base::Lsn from, std::optional<base::UnixMicros> from_time);

}  // namespace thalweg::search
