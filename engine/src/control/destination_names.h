#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "control/strict_json.h"
#include "control/table_ref.h"

// The names of a stream's tables at its destinations (docs/decisions/renamed-tables.md). The document has them worked
// out, table by table; everything else in it names tables as the source does.

namespace thalweg::control {

// Those tables that have another name there. No two have one name, and none the name of another table of the stream.
using DestinationNames = std::map<TableRef, TableRef>;

const TableRef& name_there(const DestinationNames& names, const TableRef& table);
// The stream's tables by their names there: for name_there() the other way round.
DestinationNames reversed(const DestinationNames& names);

// The member "destination" of a table; its own name where it has none. Fails with invalid_request.
base::Result<TableRef> read_destination_name(ObjectReader& reader, const TableRef& table);
// Fails with invalid_request. `pointer`: of the list of `tables`.
base::Result<void> check_destination_names(const std::vector<TableRef>& tables, const DestinationNames& names,
                                           const std::string& pointer);

}  // namespace thalweg::control
