#include "pg/text_array.h"

namespace thalweg::pg {

std::string text_array(const std::vector<std::string>& elements) {
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

std::vector<std::string> parse_text_array(std::string_view array) {
  std::vector<std::string> elements;
  if (array.size() <= 2) return elements;
  elements.emplace_back();
  bool quoted = false;
  for (size_t i = 1; i + 1 < array.size(); ++i) {
    const char letter = array[i];
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == '\\') {
      elements.back() += array[++i];
    } else if (letter == ',' && !quoted) {
      elements.emplace_back();
    } else {
      elements.back() += letter;
    }
  }
  return elements;
}

}  // namespace thalweg::pg
