#include "daemon/former_backlog.h"

#include "base/file.h"

namespace thalweg::daemon {

base::Result<void> move_former_backlog(const std::filesystem::path& spill_directory,
                                       const control::StreamDefinition& definition) {
  const std::filesystem::path former = spill_directory / control::kMigratedId;
  std::error_code error;
  if (definition.find(control::kMigratedId) != nullptr || !std::filesystem::exists(former, error)) return {};
  for (const control::DestinationDefinition& one : definition.destinations) {
    const std::filesystem::path own = spill_directory / one.id;
    if (!one.backlog || std::filesystem::exists(own, error)) continue;
    std::filesystem::rename(former, own, error);
    if (error) return std::unexpected(base::file_error(error.value(), "rename " + former.string()));
    return {};
  }
  return {};
}

}  // namespace thalweg::daemon
