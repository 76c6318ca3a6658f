#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

// Characters of texts that are valid UTF-8.

namespace thalweg::rules {

// Bytes of the first character; `text` is not empty.
inline size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size());
}

inline int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// The bytes of the first `count` characters.
inline size_t bytes_of(std::string_view text, int64_t count) {
  size_t at = 0;
  for (; count > 0 && at < text.size(); --count) at += character_bytes(text.substr(at));
  return at;
}

}  // namespace thalweg::rules
