#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/ids.h"

// Where the slot that a stream reads was made. The source does not tell; and a destination that lacks something from
// before has lost it with an earlier slot, which is another thing than a slot that somebody has moved on.

namespace thalweg::daemon {

// In `folder`, which is made. Survives the engine.
base::Result<void> note_made_slot(const std::filesystem::path& folder, base::Lsn made_at);
// Zero where nobody has noted it: another engine made it, or an older version of this one.
base::Lsn read_made_slot(const std::filesystem::path& folder);

}  // namespace thalweg::daemon
