#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace thalweg::rules {

// The internal name ("int4"; "char" is char(n)) of the type whose SQL name `word` spells, word by word ("double",
// "precision"), and how many words it took. None where it is no type that a condition may use.
std::optional<std::string_view> find_type_name(const std::function<std::string_view(size_t)>& word, size_t& words);

}  // namespace thalweg::rules
