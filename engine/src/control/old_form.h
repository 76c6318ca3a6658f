#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "control/desired_state.h"

// The form of a stream up to version 0.1.0: one destination beside the list of destinations, and none in it
// (engine/contract/control-api.md, "Documents of the old form"). An engine that was upgraded finds it on its disk.

namespace thalweg::control {

// The id of that destination in the list, until the control plane's next document gives it its own. Only a document
// from the disk may have it; the backend calls it FORMER_ID.
inline constexpr std::string_view kOldFormId = "default";

// A stream as the engine of version 0.1.0 stored it, in today's form. Nothing changes in a stream of today's form.
void migrate_old_form(nlohmann::json& stream);

// The id in `next` of the destination that has kOldFormId in `now`: of the same address, or of the only one. None where
// `now` has no such destination.
std::optional<std::string> adopt_id(const StreamDefinition& now, const StreamDefinition& next);

}  // namespace thalweg::control
