#pragma once

#include <string>
#include <string_view>

#include "rules/syntax.h"

namespace thalweg::rules {

// The attributes' values in a condition that is written for the source.
struct AttributeValues {
  std::string_view schema;
  std::string_view table;
  std::string_view source;
};

// A condition that was typed, as SQL for the source, about a row that an INSERT would bring: columns are its columns,
// `old.` values are NULL. Everything is in brackets, and every function and operator is pg_catalog's, whatever the
// session's settings: nothing of the text is taken over as it stands.
std::string to_sql(const Expression& condition, const AttributeValues& attributes);

}  // namespace thalweg::rules
