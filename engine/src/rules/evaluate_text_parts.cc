#include <array>

#include "rules/evaluators.h"
#include "rules/utf8.h"

// Functions that repeat, fill, split and exchange the characters of a text.

namespace thalweg::rules {

namespace {

Failure repeat(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const auto count = static_cast<size_t>(std::max<int64_t>(b.integer, 0));
  char* const bytes = scratch.take(a.size * count);
  if (bytes == nullptr) return Failure::too_large;
  for (size_t i = 0; i < count && a.size > 0; ++i) a.text().copy(bytes + i * a.size, a.size);
  return give_text(out, {bytes, a.size * count});
}

// The first `count` characters of `fill` over and over, which has some.
Failure filling(Scratch& scratch, std::string_view fill, int64_t count, std::string_view& out) {
  const auto whole = static_cast<size_t>(count / characters(fill));
  const size_t rest = bytes_of(fill, count % characters(fill));
  const size_t size = whole * fill.size() + rest;
  char* const bytes = scratch.take(size);
  if (bytes == nullptr) return Failure::too_large;
  for (size_t i = 0; i < whole; ++i) fill.copy(bytes + i * fill.size(), fill.size());
  fill.copy(bytes + whole * fill.size(), rest);
  out = {bytes, size};
  return Failure::none;
}

template <bool Left>
Failure pad_with(Scratch& scratch, std::string_view text, int64_t length, std::string_view fill, Datum& out) {
  length = std::max<int64_t>(length, 0);
  const int64_t missing = length - characters(text);
  if (missing <= 0 || characters(fill) == 0) return give_text(out, text.substr(0, bytes_of(text, length)));
  std::string_view filled;
  if (const Failure failure = filling(scratch, fill, missing, filled); failure != Failure::none) return failure;
  char* const bytes = scratch.take(text.size() + filled.size());
  if (bytes == nullptr) return Failure::too_large;
  const std::string_view first = Left ? filled : text;
  const std::string_view second = Left ? text : filled;
  first.copy(bytes, first.size());
  second.copy(bytes + first.size(), second.size());
  return give_text(out, {bytes, first.size() + second.size()});
}
template <bool Left>
Failure pad(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  return pad_with<Left>(scratch, a.text(), b.integer, c.text(), out);
}
template <bool Left>
Failure pad_blanks(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return pad_with<Left>(scratch, a.text(), b.integer, " ", out);
}

int64_t count_of(std::string_view text, std::string_view separator) {
  int64_t count = 0;
  for (size_t at = 0; (at = find_text(text, separator, at)) != std::string_view::npos; at += separator.size()) ++count;
  return count;
}

// Fields count from 1, or from the last one as -1.
Failure split_part(Scratch&, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  std::string_view text = a.text();
  const std::string_view separator = b.text();
  if (c.integer == 0) return Failure::invalid_parameter;
  const int64_t fields = text.empty() || separator.empty() ? 1 : count_of(text, separator) + 1;
  const int64_t wanted = c.integer < 0 ? c.integer + fields + 1 : c.integer;
  if (wanted < 1 || wanted > fields) return give_text(out, {});
  for (int64_t field = 1; field < wanted; ++field) text.remove_prefix(find_text(text, separator) + separator.size());
  return give_text(out, separator.empty() ? text : text.substr(0, find_text(text, separator)));
}

// The character of `to` at the place that `character` has in `from`; empty: none. False: `from` has not got it.
bool exchanged(std::string_view character, std::string_view from, std::string_view to, std::string_view& out) {
  for (; !from.empty(); from.remove_prefix(character_bytes(from))) {
    const std::string_view taken = to.substr(0, to.empty() ? 0 : character_bytes(to));
    if (from.substr(0, character_bytes(from)) == character) {
      out = taken;
      return true;
    }
    to.remove_prefix(taken.size());
  }
  return false;
}
Failure translate(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  constexpr size_t kGrowth = 4;  // a character of one byte becomes one of four
  if (!scratch.spend(uint64_t{a.size} * b.size)) return Failure::too_costly;
  char* const bytes = scratch.take(size_t{a.size} * kGrowth);
  if (bytes == nullptr) return Failure::too_large;
  size_t size = 0;
  for (std::string_view rest = a.text(); !rest.empty();) {
    std::string_view character = rest.substr(0, character_bytes(rest));
    rest.remove_prefix(character.size());
    exchanged(character, b.text(), c.text(), character);
    size += character.copy(bytes + size, character.size());
  }
  return give_text(out, {bytes, size});
}

// The code point of the first character.
Failure ascii(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  constexpr std::array<uint32_t, 5> kLeadBits{0, 0x7F, 0x1F, 0x0F, 0x07};
  out.integer = 0;
  if (a.size == 0) return Failure::none;
  const size_t bytes = character_bytes(a.text());
  uint32_t code = static_cast<unsigned char>(a.data[0]) & kLeadBits[bytes];
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<unsigned char>(a.data[i]) & 0x3F);
  out.integer = code;
  return Failure::none;
}

// The character of a code point.
Failure character_of(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  constexpr int64_t kLast = 0x10FFFF;
  const int64_t code = a.integer;
  if (code < 0) return Failure::invalid_parameter;
  if (code == 0 || code > kLast || (code >= 0xD800 && code <= 0xDFFF)) return Failure::invalid_character;
  char* const bytes = scratch.take(kCharacterBytesMax);
  if (bytes == nullptr) return Failure::too_large;
  return give_text(out, {bytes, put_character(static_cast<uint32_t>(code), bytes)});
}

// Every first letter of a word large, the others small; a word is made of ASCII's letters and digits.
Failure capitalize(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  constexpr char kShift = 'a' - 'A';
  char* const bytes = scratch.take(a.size);
  if (bytes == nullptr) return Failure::too_large;
  bool in_word = false;
  for (size_t i = 0; i < a.size; ++i) {
    char c = a.data[i];
    const bool large = c >= 'A' && c <= 'Z';
    const bool small = c >= 'a' && c <= 'z';
    if (large && in_word) c = static_cast<char>(c + kShift);
    if (small && !in_word) c = static_cast<char>(c - kShift);
    bytes[i] = c;
    in_word = large || small || (c >= '0' && c <= '9');
  }
  return give_text(out, {bytes, a.size});
}

constexpr std::array kEvaluators{Evaluator{"repeat", repeat},
                                 Evaluator{"lpad", pad<true>},
                                 Evaluator{"rpad", pad<false>},
                                 Evaluator{"lpad_25_sql", pad_blanks<true>},
                                 Evaluator{"rpad_25_sql", pad_blanks<false>},
                                 Evaluator{"split_part", split_part, Collates::equality},
                                 Evaluator{"translate", translate},
                                 Evaluator{"ascii", ascii, Collates::nothing, true},
                                 Evaluator{"chr", character_of, Collates::nothing, true},
                                 Evaluator{"initcap", capitalize, Collates::order}};

}  // namespace

std::span<const Evaluator> text_part_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
