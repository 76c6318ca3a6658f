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
// Where a pointer is null, a table cannot have that member.
struct TableParts {
  AcceptedCode* accepted_code = nullptr;
  TableRules* rules = nullptr;
  TableTransformations* transformations = nullptr;
  DestinationNames* names = nullptr;
};
// The member "tables": at least one, each once; those of which only inserts are wanted stand in the set, too.
base::Result<void> read_tables(ObjectReader& parent, std::vector<TableRef>& out, std::set<TableRef>& inserts_only,
                               const TableParts& parts);

}  // namespace thalweg::control
