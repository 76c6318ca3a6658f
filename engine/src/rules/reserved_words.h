#pragma once

#include <string_view>

namespace thalweg::rules {

// Whether PostgreSQL keeps the word, in lower case, for its grammar: it is no column unless it is quoted. `table` is
// not among them, for it is an attribute of a change.
bool is_reserved(std::string_view word);

}  // namespace thalweg::rules
