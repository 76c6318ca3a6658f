#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/schema_plan.h"
#include "pg/connection.h"

// Tries statements on the server, each in a subtransaction, all in one round trip.

namespace thalweg::instantiation {

struct Refusal {
  size_t statement = 0;  // index
  std::string sqlstate;
  std::string message;
};

// Within the caller's transaction, which it must roll back. Statements that depend on a table or type whose statement
// failed are not tried: their own failure would say nothing new. Fails itself only where the server gives up the whole.
base::Result<std::vector<Refusal>> dry_run(pg::Connection& connection, const std::vector<Statement>& statements);

}  // namespace thalweg::instantiation
