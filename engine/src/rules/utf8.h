#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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

inline constexpr size_t kCharacterBytesMax = 4;

// Writes a code point that is no surrogate; returns how many bytes it has.
inline size_t put_character(uint32_t code, char* out) {
  if (code < 0x80) {
    out[0] = static_cast<char>(code);
    return 1;
  }
  const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = bytes; i-- > 1; code >>= 6) out[i] = static_cast<char>(0x80 | (code & 0x3F));
  out[0] = static_cast<char>((0xF00 >> bytes & 0xFF) | code);
  return bytes;
}

// As string_view::find, but in linear time whatever the texts are (glibc's memmem searches two-way): its time may grow
// with the product of the lengths, and both come from rows.
inline size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  // Nor do empty texts, whose data may be null, reach memmem.
  if (wanted.size() > text.size() - from) return std::string_view::npos;
  const void* const found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace thalweg::rules
