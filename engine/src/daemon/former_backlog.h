#pragma once

#include <filesystem>

#include "base/error.h"
#include "control/desired_state.h"

namespace thalweg::daemon {

// In a list of an older version a destination could have the id that is reserved now. Its backlog lies in a folder of
// that name: moves it to the destination that has its place, the first with a backlog that has no folder yet. Before
// sessions begin. Idempotent.
base::Result<void> move_former_backlog(const std::filesystem::path& spill_directory,
                                       const control::StreamDefinition& definition);

}  // namespace thalweg::daemon
