#include "base/plain_text.h"

#include <cstddef>
#include <cstdint>

namespace thalweg::base {

namespace {

bool is_control(uint32_t character) {
  if (character == '\t' || character == '\n' || character == '\r') return false;
  return character < 0x20 || (character >= 0x7F && character < 0xA0);
}

// How many bytes follow a character's first one, and the lowest character that needs so many.
struct Form {
  size_t following;
  uint32_t lowest;
};

constexpr size_t kContinuationsMax = 3;  // of a character's bytes

}  // namespace

bool is_plain_text(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    if (first >= 0x80 && (first < 0xC0 || first >= 0xF8)) return false;
    const Form form = first < 0x80   ? Form{.following = 0, .lowest = 0}
                      : first < 0xE0 ? Form{.following = 1, .lowest = 0x80}
                      : first < 0xF0 ? Form{.following = 2, .lowest = 0x800}
                                     : Form{.following = 3, .lowest = 0x10000};
    if (bytes.size() - at <= form.following) return false;
    uint32_t character = form.following == 0 ? first : first & (0x3FU >> form.following);
    for (size_t i = 0; i < form.following; ++i) {
      const auto next = static_cast<unsigned char>(bytes[++at]);
      if ((next & 0xC0) != 0x80) return false;
      character = character << 6 | (next & 0x3FU);
    }
    const bool is_surrogate = character >= 0xD800 && character < 0xE000;
    if (character < form.lowest || character > 0x10FFFF || is_surrogate || is_control(character)) return false;
  }
  return true;
}

std::string_view cut_at_character(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && bytes_max - end < kContinuationsMax && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

}  // namespace thalweg::base
