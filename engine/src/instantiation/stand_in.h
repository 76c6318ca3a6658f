#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/schema_plan.h"
#include "pg/connection.h"

// Foreign keys that point at tables which the destination has: to try one there would lock out everybody who writes to
// the table, for as long as the rehearsal takes. An empty table with the same keys stands in for it.

namespace thalweg::instantiation {

// Puts the tables that stand in before the first foreign key and has the foreign keys point at them. Reads the
// destination's catalogs only. A foreign key whose table may not be referenced is left out of the plan and is among
// `denied`.
base::Result<void> use_stand_ins(pg::Connection& destination, std::vector<Statement>& plan,
                                 std::vector<Statement>& denied);

// Whether it is about one of them: the source has nothing of that name, and its failure says nothing.
bool is_stand_in(const Statement& statement);
// The statement as it was before use_stand_ins().
Statement without_stand_in(Statement statement);

}  // namespace thalweg::instantiation
