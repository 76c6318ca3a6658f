#pragma once

#include <string>
#include <vector>

namespace thalweg::pg {

// The text form of an array of text. Quotes every element, so that none is taken for NULL or for syntax.
inline std::string text_array(const std::vector<std::string>& elements) {
  std::string array = "{";
  for (const std::string& element : elements) {
    array += array.size() > 1 ? ",\"" : "\"";
    for (const char letter : element) {
      if (letter == '"' || letter == '\\') array += '\\';
      array += letter;
    }
    array += '"';
  }
  return array + "}";
}

}  // namespace thalweg::pg
