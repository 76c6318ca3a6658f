#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace thalweg::spill {

// Current use of the disk by spilling.
struct SpillUse {
  uint64_t bytes;     // of segment files
  uint64_t logs;      // spilled transactions, or lagging consumers
  uint64_t segments;  // files
  // How long the oldest segment has been there: the age of the oldest LCR on disk, to within a segment. Zero when none.
  std::chrono::microseconds age;
};

// A directory for segments and the account of its space: bounded by a limit and by what the file system has left.
// Thread-safe: `take` and `give` under a mutex, once per block.
class SpillSpace {
 public:
  static constexpr uint64_t kFreeBytesMin = uint64_t{256} << 20;

  // Takes at most `limit_bytes`, and nothing while the file system has less than `free_bytes_min` for users like us.
  // `clock` outlives it; `limit_name` is the parameter that errors name.
  SpillSpace(std::filesystem::path directory, uint64_t limit_bytes, const base::Clock& clock,
             uint64_t free_bytes_min = kFreeBytesMin, std::string_view limit_name = "spill_limit_mb");
  SpillSpace(const SpillSpace&) = delete;
  SpillSpace& operator=(const SpillSpace&) = delete;

  // Creates the directory where it is missing and removes the segments that a process which no longer runs left in it.
  // Call it at start, when no other engine uses the directory. How many were removed.
  base::Result<size_t> clear();

  // From the next take on. Below what is in use: nothing more is taken until enough has been given back.
  void set_limit(uint64_t limit_bytes) { limit_bytes_.store(limit_bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_bytes_.load(std::memory_order_relaxed); }
  // Fails with spill_limit_reached or disk_full; then nothing was taken, and it may be tried again. `above_limit`: only
  // the disk counts.
  base::Result<void> take(uint64_t bytes, bool above_limit = false);
  // Fails with spill_limit_reached once more is in use than the limit.
  base::Result<void> check_limit() const;
  void give(uint64_t bytes);
  // Counts what is there already, even above the limit: of a log that outlived a process.
  void adopt(uint64_t bytes);

  // A segment begins or goes; `begun` is what segment_begun or segment_found returned.
  using Begun = std::chrono::steady_clock::time_point;
  Begun segment_begun();
  // A segment that outlived a process or a session: it is as old as its file.
  Begun segment_found(base::UnixMicros born);
  void segment_gone(Begun begun);

  SpillUse use() const;
  const std::filesystem::path& directory() const { return directory_; }
  // A log begins: returns a number that no other in this directory has had since the engine started.
  uint64_t log_begun();
  void log_gone();
  static std::string_view file_prefix() { return "thalweg-spill-"; }

 private:
  base::Result<void> check_free_space(uint64_t bytes);
  base::Result<void> limit_reached(uint64_t limit) const;  // with mutex_ held

  const std::filesystem::path directory_;
  const base::Clock& clock_;
  const uint64_t free_bytes_min_;
  const std::string limit_name_;
  // Writer: whoever changes the parameter. Reader: take (relaxed).
  std::atomic<uint64_t> limit_bytes_;
  mutable std::mutex mutex_;
  uint64_t next_log_ = 1;
  uint64_t logs_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t unchecked_bytes_ = UINT64_MAX / 2;  // taken since the last look at the file system: look at the first take
  std::multiset<Begun> segments_;
};

}  // namespace thalweg::spill
