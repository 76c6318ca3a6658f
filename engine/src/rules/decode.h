#pragma once

#include <string_view>

#include "rules/value.h"

namespace thalweg::rules {

// A value in its type's binary send form. Text and numbers of any length point into `bytes`.
Failure decode(Type type, std::string_view bytes, Datum& out);

}  // namespace thalweg::rules
