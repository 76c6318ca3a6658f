#include <fmt/format.h>

#include <iterator>
#include <optional>

#include "mining/conversions.h"
#include "wal/little_endian.h"
#include "wal/varlena.h"

// NumericData of src/backend/utils/adt/numeric.c: digits to the base of 10 000.

namespace thalweg::mining {

namespace {

constexpr uint16_t kNegative = 0x4000;
constexpr uint16_t kSpecial = 0xC000;
constexpr size_t kDigitBytes = sizeof(uint16_t);

struct Numeric {
  uint16_t sign = 0;  // of infinities and NaN: kSpecial, and which of them
  uint16_t scale = 0;
  int16_t weight = 0;  // of the first digit
  std::span<const std::byte> digits = {};

  size_t count() const { return digits.size() / kDigitBytes; }
  uint16_t digit(size_t i) const { return wal::load<uint16_t>(digits, i * kDigitBytes); }
};

// A short header has scale and weight in its two bytes; infinities and NaN have one, too, whose bits are sent as such.
std::optional<Numeric> parse(std::span<const std::byte> content) {
  if (content.size() < sizeof(uint16_t)) return std::nullopt;
  const auto header = wal::load<uint16_t>(content, 0);
  const bool is_short = (header & 0x8000) != 0;
  const bool is_special = (header & kSpecial) == kSpecial;
  const size_t header_bytes = is_short ? 2 : 4;
  if (content.size() < header_bytes || (content.size() - header_bytes) % kDigitBytes != 0) return std::nullopt;
  Numeric numeric{.digits = content.subspan(header_bytes)};
  if (is_short) {
    numeric.sign = is_special ? (header & 0xF000) : (header & 0x2000) != 0 ? kNegative : 0;
    numeric.scale = (header & 0x1F80) >> 7;
    numeric.weight = static_cast<int16_t>(((header & 0x0040) != 0 ? 0xFFC0 : 0) | (header & 0x003F));
  } else {
    numeric.sign = header & kSpecial;
    numeric.scale = header & 0x3FFF;
    numeric.weight = wal::load<int16_t>(content, 2);
  }
  return numeric;
}

}  // namespace

// numeric_send
bool append_numeric(const SendForm&, std::span<const std::byte> content, std::string& out) {
  const auto numeric = parse(content);
  if (!numeric) return false;
  append_network(out, static_cast<uint16_t>(numeric->count()));
  append_network(out, static_cast<uint16_t>(numeric->weight));
  append_network(out, numeric->sign);
  append_network(out, numeric->scale);
  for (size_t i = 0; i < numeric->count(); ++i) append_network(out, numeric->digit(i));
  return true;
}

// get_str_from_var
bool append_numeric_text(std::span<const std::byte> stored, std::string& out) {
  const auto value = wal::parse_varlena(stored);
  if (!value || value->external || value->is_compressed) return false;
  const auto content = value->content;
  constexpr uint16_t kBase = 10'000;
  const auto numeric = parse(content);
  if (!numeric || (numeric->sign & kSpecial) == kSpecial) return false;
  const auto digit = [&](int i) -> uint16_t {
    return i >= 0 && static_cast<size_t>(i) < numeric->count() ? numeric->digit(static_cast<size_t>(i)) : 0;
  };
  for (size_t i = 0; i < numeric->count(); ++i) {
    if (numeric->digit(i) >= kBase) return false;
  }
  auto end = std::back_inserter(out);
  if (numeric->sign == kNegative) out += '-';
  if (numeric->weight < 0) out += '0';
  for (int i = 0; i <= numeric->weight; ++i) {
    if (i == 0) {
      fmt::format_to(end, "{}", digit(i));
    } else {
      fmt::format_to(end, "{:04}", digit(i));
    }
  }
  if (numeric->scale == 0) return true;
  out += '.';
  const size_t whole = out.size() + numeric->scale;
  for (int i = numeric->weight + 1; out.size() < whole; ++i) fmt::format_to(end, "{:04}", digit(i));
  out.resize(whole);
  return true;
}

}  // namespace thalweg::mining
