#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/desired_state.h"
#include "control/strict_json.h"

// Parts of the desired document that other requests have as well.

namespace thalweg::control {

inline constexpr size_t kConninfoBytesMax = 512 * 1024;  // with certificates

// The conninfo in the member of a database that need not be one of the document.
base::Result<std::string> read_conninfo(ObjectReader& parent, std::string_view database);
// The member "database_networks": where databases may be. Left out: anywhere.
base::Result<base::Networks> read_networks(ObjectReader& parent);
// The member "tables": at least one, each once; those of which only inserts are wanted stand in the set, too. Where
// one of the pointers is null, a table cannot have that member.
base::Result<void> read_tables(ObjectReader& parent, std::vector<TableRef>& out, std::set<TableRef>& inserts_only,
                               AcceptedCode* accepted_code, TableRules* rules, TableTransformations* transformations);

}  // namespace thalweg::control
