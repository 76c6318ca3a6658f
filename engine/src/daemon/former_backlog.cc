#include "daemon/former_backlog.h"

#include <fmt/format.h>

#include "base/file.h"
#include "control/old_form.h"

namespace thalweg::daemon {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& spill_directory) { return spill_directory / control::kOldFormId; }
constexpr const char* kNote = "destination";  // a file: whose it is

}  // namespace

base::Result<void> name_former_backlog(const fs::path& spill_directory, const std::string& id) {
  const fs::path former = folder_of(spill_directory);
  std::error_code error;
  if (!fs::exists(former, error)) return {};
  return base::write_file_atomically(former / kNote, id, 0600);
}

base::Result<void> move_former_backlog(const fs::path& spill_directory, const control::StreamDefinition& definition) {
  const fs::path former = folder_of(spill_directory);
  std::error_code error;
  if (definition.find(control::kOldFormId) != nullptr || !fs::exists(former, error)) return {};
  const auto noted = base::read_file(former / kNote);
  const control::DestinationDefinition* owner = nullptr;
  for (const control::DestinationDefinition& destination : definition.destinations) {
    if (!destination.backlog || fs::exists(spill_directory / destination.id, error) ||
        (noted && *noted != destination.id))
      continue;
    if (owner != nullptr) {
      return base::fail(base::ErrorCode::state_directory_failed,
                        fmt::format("{} is the backlog of \"{}\" or of \"{}\": rename it after the destination's id",
                                    former.string(), owner->id, destination.id));
    }
    owner = &destination;
  }
  if (owner == nullptr) return {};
  const fs::path own = spill_directory / owner->id;
  fs::rename(former, own, error);
  if (error) return std::unexpected(base::file_error(error.value(), "rename " + former.string()));
  fs::remove(own / kNote, error);  // says nothing any more
  return {};
}

}  // namespace thalweg::daemon
