#pragma once

#include <string>
#include <string_view>
#include <vector>

// The text form of an array of text without NULL.

namespace thalweg::pg {

// Quotes every element, so that none is taken for NULL or for syntax.
std::string text_array(const std::vector<std::string>& elements);
// Elements of an array of one dimension, as the server writes it.
std::vector<std::string> parse_text_array(std::string_view array);

}  // namespace thalweg::pg
