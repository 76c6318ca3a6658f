#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/table_identity.h"
#include "pg/connection.h"
#include "pg/publication_names.h"

// Reads from the source's catalogs which relations a stream's tables are.

namespace thalweg::instantiation {

struct WatchedTable {
  TableName name;
  TableIdentity was;
};

// Those relations, and whatever bears those names now. Asks each partition that is in no identity whether it came with
// rows, so it may wait for a lock. Without the publication of changes (an empty name, or none of that name) nothing is
// known of what is published: capture itself says that it is gone.
base::Result<SourceTables> look_at_source(pg::Connection& source, const pg::PublicationNames& publications,
                                          std::span<const WatchedTable> watched);

}  // namespace thalweg::instantiation
