#pragma once

#include <string>
#include <string_view>

namespace thalweg::base {

// A message of a database or of libpq may lack its full stop, or end with a line break.
inline void add_sentence(std::string& text, std::string_view sentence) {
  text.erase(text.find_last_not_of(" \n") + 1);
  if (!text.empty()) text += text.ends_with('.') ? " " : ". ";
  text += sentence;
}

}  // namespace thalweg::base
