#pragma once

#include <span>
#include <string>

#include "pg/connection.h"

namespace thalweg::pg {

// Runs one statement of a transaction that goes on where the statement fails: behind a savepoint, to which it is rolled
// back then. One round trip, and one more where it fails. An error of a connection that is not broken is the server's.
// The connection is in a transaction, and not in pipeline mode. Owner: the connection's owner.
base::Result<Rows> query_guarded(Connection& connection, const std::string& sql, std::span<const Parameter> parameters);

}  // namespace thalweg::pg
