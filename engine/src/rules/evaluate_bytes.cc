#include <algorithm>
#include <array>
#include <bit>
#include <bitset>

#include "rules/evaluators.h"
#include "rules/text_input.h"
#include "rules/utf8.h"

// bytea: its parts and bits, and its forms as text.

namespace thalweg::rules {

namespace {

unsigned char byte_at(const Datum& bytes, size_t at) { return static_cast<unsigned char>(bytes.data[at]); }

Failure cut(std::string_view bytes, int64_t start, int64_t end, Datum& out) {  // bytes from 1, `end` excluded
  const int64_t size = static_cast<int64_t>(bytes.size());
  start = std::clamp<int64_t>(start, 1, size + 1);
  end = std::clamp<int64_t>(end, start, size + 1);
  return give_text(out, bytes.substr(static_cast<size_t>(start - 1), static_cast<size_t>(end - start)));
}
Failure substring(Scratch&, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  if (c.integer < 0) return Failure::invalid_substring;
  return cut(a.text(), b.integer, b.integer + c.integer, out);
}
Failure substring_from(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  return cut(a.text(), b.integer, INT64_MAX, out);
}
Failure position(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  const size_t found = find_text(a.text(), b.text());
  out.integer = found == std::string_view::npos ? 0 : static_cast<int64_t>(found) + 1;
  return Failure::none;
}

// Puts `placed` in the place of what lies between the first part and the last one.
Failure join(Scratch& scratch, std::string_view first, std::string_view placed, std::string_view last, Datum& out) {
  const size_t size = first.size() + placed.size() + last.size();
  char* const bytes = scratch.take(size);
  if (bytes == nullptr) return Failure::too_large;
  size_t at = 0;
  for (const std::string_view part : {first, placed, last}) at += part.copy(bytes + at, part.size());
  return give_text(out, {bytes, size});
}
struct InBytes {
  static int64_t length(std::string_view bytes) { return static_cast<int64_t>(bytes.size()); }
  static size_t first(std::string_view bytes, int64_t count) {
    return static_cast<size_t>(std::clamp<int64_t>(count, 0, length(bytes)));
  }
};
struct InCharacters {
  static int64_t length(std::string_view text) { return characters(text); }
  static size_t first(std::string_view text, int64_t count) { return bytes_of(text, count); }
};
template <typename Unit>
Failure place(Scratch& scratch, const Datum& a, const Datum& b, int64_t start, int64_t length, Datum& out) {
  if (start <= 0) return Failure::invalid_substring;
  const int64_t end = start + length;
  if (end > INT32_MAX || end < INT32_MIN) return Failure::out_of_range;
  const std::string_view whole = a.text();
  return join(scratch, whole.substr(0, Unit::first(whole, start - 1)), b.text(),
              whole.substr(Unit::first(whole, end - 1)), out);
}
template <typename Unit>
Failure overlay(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  const Datum* const all = arguments_from(a);
  return place<Unit>(scratch, all[0], all[1], all[2].integer, all[3].integer, out);
}
template <typename Unit>
Failure overlay_as_long(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  return place<Unit>(scratch, a, b, c.integer, Unit::length(b.text()), out);
}

Failure get_byte(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (b.integer < 0 || b.integer >= a.size) return Failure::invalid_index;
  out.integer = byte_at(a, static_cast<size_t>(b.integer));
  return Failure::none;
}
Failure get_bit(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  if (b.integer < 0 || b.integer >= int64_t{a.size} * 8) return Failure::invalid_index;
  out.integer = byte_at(a, static_cast<size_t>(b.integer / 8)) >> (b.integer % 8) & 1;
  return Failure::none;
}
Failure copy_of(Scratch& scratch, const Datum& a, char*& bytes, Datum& out) {
  bytes = scratch.take(a.size);
  if (bytes == nullptr) return Failure::too_large;
  a.text().copy(bytes, a.size);
  return give_text(out, {bytes, a.size});
}
Failure set_byte(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  if (b.integer < 0 || b.integer >= a.size) return Failure::invalid_index;
  char* bytes = nullptr;
  if (const Failure failure = copy_of(scratch, a, bytes, out); failure != Failure::none) return failure;
  bytes[b.integer] = static_cast<char>(c.integer);
  return Failure::none;
}
Failure set_bit(Scratch& scratch, const Datum& a, const Datum& b, const Datum& c, Datum& out) {
  if (b.integer < 0 || b.integer >= int64_t{a.size} * 8) return Failure::invalid_index;
  if (c.integer != 0 && c.integer != 1) return Failure::invalid_parameter;
  char* bytes = nullptr;
  if (const Failure failure = copy_of(scratch, a, bytes, out); failure != Failure::none) return failure;
  const int bit = 1 << (b.integer % 8);
  char& byte = bytes[b.integer / 8];
  byte = static_cast<char>(c.integer == 1 ? byte | bit : byte & ~bit);
  return Failure::none;
}
Failure bit_count(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = 0;
  for (const char byte : a.text()) out.integer += std::popcount(static_cast<unsigned char>(byte));
  return Failure::none;
}
Failure bit_length(Scratch&, const Datum& a, const Datum&, const Datum&, Datum& out) {
  out.integer = int64_t{a.size} * 8;
  return out.integer > INT32_MAX ? Failure::out_of_range : Failure::none;
}

template <bool Left, bool Right>
Failure trim(Scratch&, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  std::bitset<256> set;
  for (const char byte : b.text()) set.set(static_cast<unsigned char>(byte));
  std::string_view rest = a.text();
  while (Left && !rest.empty() && set[static_cast<unsigned char>(rest.front())]) rest.remove_prefix(1);
  while (Right && !rest.empty() && set[static_cast<unsigned char>(rest.back())]) rest.remove_suffix(1);
  return give_text(out, rest);
}

enum class Form : uint8_t { hexadecimal, base64, escape };
Failure form_of(std::string_view name, Form& out) {
  if (equals_word(name, "hex")) {
    out = Form::hexadecimal;
  } else if (equals_word(name, "base64")) {
    out = Form::base64;
  } else if (equals_word(name, "escape")) {
    out = Form::escape;
  } else {
    return Failure::invalid_parameter;
  }
  return Failure::none;
}

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t write_hexadecimal(std::string_view bytes, char* text) {
  size_t size = 0;
  for (const char byte : bytes) {
    for (const int digit : {static_cast<unsigned char>(byte) >> 4, byte & 15}) text[size++] = "0123456789abcdef"[digit];
  }
  return size;
}
// A line feed behind every 76 characters, also where nothing follows.
size_t write_base64(std::string_view bytes, char* text) {
  constexpr size_t kGroupsOfALine = 19;
  size_t size = 0;
  size_t groups = 0;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text[size++] = i <= group.size() ? kBase64[bits >> (18 - 6 * i) & 63] : '=';
    if (++groups % kGroupsOfALine == 0 && group.size() == 3) text[size++] = '\n';
  }
  return size;
}
size_t write_escaped(std::string_view bytes, char* text) {
  size_t size = 0;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value == 0 || value >= 0x80) {
      text[size++] = '\\';
      for (const int shift : {6, 3, 0}) text[size++] = static_cast<char>('0' + (value >> shift & 7));
    } else {
      if (byte == '\\') text[size++] = '\\';
      text[size++] = byte;
    }
  }
  return size;
}
Failure encode(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  constexpr size_t kGrowth = 4;  // a byte is four characters at most; a line feed needs less than what is left
  Form form{};
  if (const Failure failure = form_of(b.text(), form); failure != Failure::none) return failure;
  char* const text = scratch.take(size_t{a.size} * kGrowth + kGrowth);
  if (text == nullptr) return Failure::too_large;
  const size_t size = form == Form::hexadecimal ? write_hexadecimal(a.text(), text)
                      : form == Form::base64    ? write_base64(a.text(), text)
                                                : write_escaped(a.text(), text);
  return give_text(out, {text, size});
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

int hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
// Blanks may stand between bytes, not within one.
Failure read_hexadecimal(std::string_view text, char* bytes, size_t& size) {
  for (size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    if (at + 1 == text.size()) return Failure::invalid_parameter;
    const int high = hexadecimal_digit(text[at]);
    const int low = hexadecimal_digit(text[at + 1]);
    if (high < 0 || low < 0) return Failure::invalid_parameter;
    bytes[size++] = static_cast<char>(high * 16 + low);
    at += 2;
  }
  return Failure::none;
}
// As the server reads it: what follows the first `=` is cut as its group was.
Failure read_base64(std::string_view text, char* bytes, size_t& size) {
  uint32_t bits = 0;
  int count = 0;
  int kept = 3;  // bytes of a group
  for (const char c : text) {
    if (is_blank(c)) continue;
    size_t value = 0;
    if (c == '=') {
      if (kept == 3 && count < 2) return Failure::invalid_parameter;
      if (kept == 3) kept = count - 1;
    } else {
      value = kBase64.find(c);
      if (value == std::string_view::npos) return Failure::invalid_parameter;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++count < 4) continue;
    for (int i = 0; i < kept; ++i) bytes[size++] = static_cast<char>(bits >> (16 - 8 * i) & 0xFF);
    bits = 0;
    count = 0;
  }
  return count == 0 ? Failure::none : Failure::invalid_parameter;
}
bool is_octal(std::string_view text) {  // \000 to \377
  return text.size() >= 4 && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
         text[3] <= '7';
}
Failure read_escaped(std::string_view text, char* bytes, size_t& size) {
  while (!text.empty()) {
    if (text[0] != '\\') {
      bytes[size++] = text[0];
      text.remove_prefix(1);
    } else if (is_octal(text)) {
      bytes[size++] = static_cast<char>((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
      text.remove_prefix(4);
    } else if (text.starts_with("\\\\")) {
      bytes[size++] = '\\';
      text.remove_prefix(2);
    } else {
      return Failure::invalid_text;
    }
  }
  return Failure::none;
}
Failure decode(Scratch& scratch, const Datum& a, const Datum& b, const Datum&, Datum& out) {
  Form form{};
  if (const Failure failure = form_of(b.text(), form); failure != Failure::none) return failure;
  char* const bytes = scratch.take(a.size);
  if (bytes == nullptr) return Failure::too_large;
  size_t size = 0;
  const Failure failure = form == Form::hexadecimal ? read_hexadecimal(a.text(), bytes, size)
                          : form == Form::base64    ? read_base64(a.text(), bytes, size)
                                                    : read_escaped(a.text(), bytes, size);
  return failure != Failure::none ? failure : give_text(out, {bytes, size});
}

constexpr std::array kEvaluators{Evaluator{"bytea_substr", substring},
                                 Evaluator{"bytea_substr_no_len", substring_from},
                                 Evaluator{"byteapos", position},
                                 Evaluator{"textoverlay", overlay<InCharacters>},
                                 Evaluator{"textoverlay_no_len", overlay_as_long<InCharacters>},
                                 Evaluator{"byteaoverlay", overlay<InBytes>},
                                 Evaluator{"byteaoverlay_no_len", overlay_as_long<InBytes>},
                                 Evaluator{"byteaGetByte", get_byte},
                                 Evaluator{"byteaGetBit", get_bit},
                                 Evaluator{"byteaSetByte", set_byte},
                                 Evaluator{"byteaSetBit", set_bit},
                                 Evaluator{"bytea_bit_count", bit_count},
                                 Evaluator{"bit_length_17_sql", bit_length},
                                 Evaluator{"bit_length_25_sql", bit_length, Collates::nothing, true},
                                 Evaluator{"byteatrim", trim<true, true>},
                                 Evaluator{"bytealtrim", trim<true, false>},
                                 Evaluator{"byteartrim", trim<false, true>},
                                 Evaluator{"binary_encode", encode},
                                 Evaluator{"binary_decode", decode, Collates::nothing, true}};

}  // namespace

std::span<const Evaluator> byte_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
