#include "daemon/made_slot.h"

#include "base/file.h"

namespace thalweg::daemon {
namespace {

constexpr size_t kBytesMax = 64;

std::filesystem::path file_in(const std::filesystem::path& folder) { return folder / "slot-made-at"; }

}  // namespace

base::Result<void> note_made_slot(const std::filesystem::path& folder, base::Lsn made_at) {
  THALWEG_TRY(base::make_folders(folder));
  return base::write_file_atomically(file_in(folder), base::to_string(made_at), 0600);
}

base::Lsn read_made_slot(const std::filesystem::path& folder) {
  const auto text = base::read_file(file_in(folder), kBytesMax);
  return text ? base::parse_lsn(*text).value_or(base::Lsn{}) : base::Lsn{};
}

}  // namespace thalweg::daemon
