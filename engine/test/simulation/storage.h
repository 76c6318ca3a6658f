#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/scheduler.h"

// The disks of the world's machines. Files lie in a real directory; a write may fail for want of space after half of
// it, or do something else than it says; a read may fail. A machine that loses power keeps what was synced, of the rest
// any part.

namespace thalweg::simulation {

class Storage {
 public:
  explicit Storage(Scheduler& scheduler) : scheduler_(scheduler) {}
  static Storage* current();
  void make_current();

  bool full = false;             // writes stop in the middle with ENOSPC
  bool sync_fails = false;       // half of the fsyncs of files: what they were to write may never be
  uint32_t damaged_once_in = 0;  // writes: some bytes are others, or are never written, and nobody says so
  uint32_t read_error_once_in = 0;

  // --- what the engine does, as its calls say it
  void made(const std::filesystem::path& path, bool folder);
  void will_remove(const std::filesystem::path& path);  // a file, or a folder with all it has
  // From now on no loss of power takes the file's bytes away; or the folder's entries, and what was done before them.
  void synced(int descriptor);
  // An fsync of a file failed: some of its bytes are on disk. The kernel takes the others for written, and has
  // forgotten them or not; only what is written again is ever on disk.
  void sync_failed(int descriptor);
  void written(int descriptor, size_t at, size_t bytes);

  // `process` stops for ever in one of its next calls of write and fsync; the waker has to kill it.
  void set_trap(const Process* process, uint32_t calls) {
    prey_ = process;
    trap_ = calls;
  }
  bool await_trap(Time deadline);
  void step_into_trap();

  void lose_power(const std::filesystem::path& directory);

 private:
  // Changes of folders that a loss of power may undo, but none without all that came after it.
  struct Step {
    enum class Kind : uint8_t { made_file, made_folder, removed_file, removed_folder };
    Kind kind;
    std::filesystem::path path;
    std::string synced;  // removed_file
  };
  void undo(const Step& step);
  void tear(const std::filesystem::path& path);

  Scheduler& scheduler_;
  std::map<std::filesystem::path, std::string> synced_;              // bytes of files
  std::map<std::filesystem::path, std::set<size_t>> wrongly_clean_;  // where such sectors begin
  std::vector<Step> steps_;
  const Process* prey_ = nullptr;
  uint32_t trap_ = 0;
  bool trapped_ = false;
};

}  // namespace thalweg::simulation
