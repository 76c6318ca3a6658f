#pragma once

#include <string>

#include "rules/value.h"

namespace thalweg::rules {

// Whether encode() writes values of the type.
bool is_encoded(Type type);

// A value in its type's binary send form; `out` is overwritten.
void encode(Type type, const Datum& value, std::string& out);

}  // namespace thalweg::rules
