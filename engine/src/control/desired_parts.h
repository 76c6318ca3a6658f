#pragma once

#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/desired_state.h"
#include "control/strict_json.h"

// Parts of the desired document that other requests have as well.

namespace thalweg::control {

inline constexpr size_t kConninfoBytesMax = 512 * 1024;  // with certificates

// The member "database_networks": where databases may be. Left out: anywhere.
base::Result<base::Networks> read_networks(ObjectReader& parent);
// The member "tables": at least one, each once.
base::Result<void> read_tables(ObjectReader& parent, std::vector<TableRef>& out);

}  // namespace thalweg::control
