#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "control/desired_state.h"

// In a list of an older version a destination could have the id that is reserved now (control/old_form.h). Its backlog
// lies in a folder of that name.

namespace thalweg::daemon {

// The next document calls that destination `id`. Before it is acted on.
base::Result<void> name_former_backlog(const std::filesystem::path& spill_directory, const std::string& id);

// Moves the folder to the destination that it was named for; where the engine died before that was noted, to the only
// one with a backlog that has no folder yet. Fails with state_directory_failed where there are several. Before sessions
// begin. Idempotent.
base::Result<void> move_former_backlog(const std::filesystem::path& spill_directory,
                                       const control::StreamDefinition& definition);

}  // namespace thalweg::daemon
