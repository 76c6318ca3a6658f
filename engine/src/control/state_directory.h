#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace thalweg::control {

// The engine's folder on disk, mode 0700, with its lock: two engines on one state directory would undo each other's
// work. The lock lasts as long as the object. Owner: the thread that made it.
class StateDirectory {
 public:
  // Creates the folder where missing. Fails with state_directory_failed when another engine holds it.
  static base::Result<StateDirectory> open(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return path_; }

 private:
  StateDirectory(std::filesystem::path path, base::File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  base::File lock_;
};

}  // namespace thalweg::control
