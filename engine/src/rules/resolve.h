#pragma once

#include <span>
#include <vector>

#include "rules/catalogue.h"

// PostgreSQL's choice of operators, functions and common types (its manual, chapter "Type Conversion").

namespace thalweg::rules {

// The candidate for arguments of these types; nullptr where none or more than one fits.
const Candidate* resolve_operator(std::span<const Candidate> candidates, Type left, Type right);
const Candidate* resolve_function(std::span<const Candidate> candidates, std::span<const Type> arguments);

// The common type of CASE, COALESCE and IN; none if the types do not go together.
Type common_type(std::span<const Type> types);

bool converts_implicitly(Type source, Type target);

}  // namespace thalweg::rules
