#include "rules/like.h"

#include "rules/utf8.h"

namespace thalweg::rules {

// A mismatch goes back to the last % only: what an earlier one took may be taken by the last one as well.
Failure match_like(Scratch& scratch, std::string_view text, std::string_view pattern, bool& matches) {
  std::string_view retry_text;
  std::string_view retry_pattern;  // what follows the last %
  bool wild = false;
  char first = '\0';  // of what follows it, literally
  matches = false;
  const auto retry = [&] {
    if (!wild) return false;
    do {
      if (retry_text.empty()) return false;
      retry_text.remove_prefix(character_bytes(retry_text));
    } while (retry_text.empty() || retry_text[0] != first);
    text = retry_text;
    pattern = retry_pattern;
    return true;
  };
  for (;;) {
    if (!scratch.spend(1)) return Failure::too_costly;
    if (pattern.empty()) {
      if (text.empty()) {
        matches = true;
        return Failure::none;
      }
      if (!retry()) return Failure::none;
      continue;
    }
    if (text.empty()) {  // nothing that comes later can match either
      matches = pattern.find_first_not_of('%') == std::string_view::npos;
      return Failure::none;
    }
    const char c = pattern[0];
    if (c == '%') {
      pattern.remove_prefix(1);
      while (!pattern.empty() && (pattern[0] == '%' || pattern[0] == '_')) {
        if (pattern[0] == '_') {
          if (text.empty()) return Failure::none;
          text.remove_prefix(character_bytes(text));
        }
        pattern.remove_prefix(1);
      }
      if (pattern.empty()) {
        matches = true;
        return Failure::none;
      }
      if (pattern[0] == '\\' && pattern.size() < 2) return Failure::invalid_escape;
      first = pattern[0] == '\\' ? pattern[1] : pattern[0];
      wild = true;
      retry_text = text;
      retry_pattern = pattern;
      if (text.empty()) return Failure::none;
      if (text[0] != first && !retry()) return Failure::none;
    } else if (c == '_') {
      text.remove_prefix(character_bytes(text));
      pattern.remove_prefix(1);
    } else {
      const bool escaped = c == '\\';
      if (escaped && pattern.size() < 2) return Failure::invalid_escape;
      if (pattern[escaped ? 1 : 0] == text[0]) {
        text.remove_prefix(1);
        pattern.remove_prefix(escaped ? 2 : 1);
      } else if (!retry()) {
        return Failure::none;
      }
    }
  }
}

Failure with_backslashes(Scratch& scratch, std::string_view pattern, std::string_view escape, Datum& out) {
  if (escape == "\\") return give_text(out, pattern);
  if (!escape.empty() && escape.size() != character_bytes(escape)) return Failure::invalid_escape;
  char* const bytes = scratch.take(pattern.size() * 2);
  if (bytes == nullptr) return Failure::too_large;
  size_t size = 0;
  bool escaped = false;
  while (!pattern.empty()) {
    const std::string_view character = pattern.substr(0, character_bytes(pattern));
    if (!escape.empty() && character == escape && !escaped) {
      bytes[size++] = '\\';
      escaped = true;
    } else {
      if (character == "\\" && !escaped) bytes[size++] = '\\';
      character.copy(bytes + size, character.size());
      size += character.size();
      escaped = false;
    }
    pattern.remove_prefix(character.size());
  }
  return give_text(out, {bytes, size});
}

}  // namespace thalweg::rules
