#pragma once

#include <vector>

#include "base/error.h"
#include "instantiation/table_name.h"
#include "pg/connection.h"

namespace thalweg::instantiation {

// Fails with insufficient_privilege where row-level security applies to the connection's role: the copy and apply run
// with row_security = off, so that PostgreSQL refuses their statements instead of leaving rows out.
base::Result<void> check_row_security(pg::Connection& connection, const std::vector<TableName>& tables,
                                      base::ErrorSide side);

}  // namespace thalweg::instantiation
