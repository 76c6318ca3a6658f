#pragma once

#include "rules/typed.h"

// PostgreSQL's derivation of collations (its manual, "Collation Support").

namespace thalweg::rules {

// Of a call, from its arguments. Refuses where the function needs a collation that is unclear, or another than it has.
Ruled<void> derive_collation(Typed& call);

// Derives the collation of a CASE or COALESCE from what it may return.
Ruled<void> derive_collation_of_results(Typed& node);

}  // namespace thalweg::rules
