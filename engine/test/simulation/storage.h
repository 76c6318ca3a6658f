#pragma once

#include <cstdint>
#include <filesystem>

#include "simulation/scheduler.h"

// What happens to files of simulated machines. They lie in a real directory; a write may fail for want of space after
// half of it, or do something else than it says; a read may fail.

namespace thalweg::simulation {

struct Storage {
  bool full = false;             // writes stop in the middle with ENOSPC
  uint32_t damaged_once_in = 0;  // writes: some bytes are others, or are never written, and nobody says so
  uint32_t read_error_once_in = 0;
  uint64_t damaged = 0;  // so many writes were

  static Storage* current();
  void make_current();
};

// What a crash makes of files that were never synced: torn, emptied, or as they were.
void tear_files(Scheduler& scheduler, const std::filesystem::path& directory);

}  // namespace thalweg::simulation
