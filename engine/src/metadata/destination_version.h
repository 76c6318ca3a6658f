#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// Notices that a table was changed at the destination: what Wong et al. 2009's memory manager tells by a status
// variable.

namespace thalweg::metadata {

// SQL over `c` (pg_class) and `n` (its pg_namespace) for one bigint that is another whenever something that
// TableMetadata was made of may be: the table's name, its columns, indexes, foreign keys on either side, and triggers
// that fire for replicas. By index lookups only; takes no lock on the table. Not seen: a changed type of a column under
// the same oid (ALTER TYPE); values that do not fit tell of that.
std::string destination_version_sql();
// SQL over `c` for TableMetadata::has_triggers.
std::string has_triggers_sql();

struct DestinationVersion {
  base::RelationId table;  // pg_class.oid at the destination
  int64_t version;
};
// Tables that are not there any more are not in the result.
base::Result<std::vector<DestinationVersion>> destination_versions(pg::Connection& connection,
                                                                   std::span<const base::RelationId> tables);

// SQLSTATEs that a statement fails with when the table is not what it was when the statement was made.
bool is_schema_change(std::string_view sqlstate);

}  // namespace thalweg::metadata
