#pragma once

#include <string>

#include "base/error.h"
#include "pg/connection.h"
#include "transform/step.h"

// Masks in SQL, for who reads the source's rows: what a statement returns is what a change would bring.

namespace thalweg::transform {

// `column` is quoted, `type` the column's type as SQL. A hash needs a session with the key's session_settings().
std::string sql_mask(const pg::Connection& connection, const Mask& mask, const std::string& column,
                     const std::string& type);

// A constant of that type as SQL.
std::string sql_constant(const pg::Connection& connection, const std::string& constant, const std::string& type);

// Fails with transformation_refused unless the constant is written as PostgreSQL writes it in that type: anything else
// could mean another value from one moment or session to the next, or become another by the type's modifier.
base::Result<void> check_constant(pg::Connection& connection, const std::string& constant, const std::string& type,
                                  const std::string& table, const std::string& column);

}  // namespace thalweg::transform
