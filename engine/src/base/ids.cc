#include "base/ids.h"

#include <charconv>
#include <cstdio>

namespace thalweg::base {

namespace {

// One half of an LSN: 1 to 8 hexadecimal digits, no sign, no prefix.
std::optional<uint32_t> parse_half(std::string_view text) {
  if (text.empty() || text.size() > 8) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(Lsn lsn) {
  char text[2 * 8 + 2];
  const int length = std::snprintf(text, sizeof(text), "%X/%X", static_cast<unsigned>(lsn.value >> 32),
                                   static_cast<unsigned>(lsn.value & 0xFFFFFFFFU));
  return {text, static_cast<size_t>(length)};
}

std::optional<Lsn> parse_lsn(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto high = parse_half(text.substr(0, slash));
  const auto low = parse_half(text.substr(slash + 1));
  if (!high || !low) return std::nullopt;
  return Lsn{uint64_t{*high} << 32 | *low};
}

}  // namespace thalweg::base
