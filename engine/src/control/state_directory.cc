#include "control/state_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace thalweg::control {

namespace fs = std::filesystem;

base::Result<StateDirectory> StateDirectory::open(const fs::path& given) {
  std::error_code error;
  fs::path path = fs::absolute(given, error);
  bool created = !error && fs::create_directories(path, error);
  if (!error && created) fs::permissions(path, fs::perms::owner_all, error);
  if (error)
    return std::unexpected(
        base::file_error(error.value(), fmt::format("create the state directory {}", path.string())));
  THALWEG_ASSIGN(base::File lock, base::File::open(path / "lock", O_RDWR | O_CREAT));
  if (::flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    return base::fail(base::ErrorCode::state_directory_failed,
                      fmt::format("Another engine runs with the state directory {}", path.string()));
  }
  return StateDirectory(std::move(path), std::move(lock));
}

}  // namespace thalweg::control
