#include "rules/text_input.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

#include "rules/numeric.h"
#include "rules/time_input.h"

namespace thalweg::rules {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Failure input_integer(std::string_view text, int64_t low, int64_t high, Datum& out) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return Failure::invalid_text;
  Wide value = 0;
  bool over = false;
  for (const char c : text) {
    if (c < '0' || c > '9') return over ? Failure::out_of_range : Failure::invalid_text;
    value = value * 10 + (negative ? '0' - c : c - '0');
    over = over || value < low || value > high;
    if (over) value = 0;
  }
  if (over) return Failure::out_of_range;
  out.integer = static_cast<int64_t>(value);
  return Failure::none;
}

// The shortest beginnings that boolin takes, and what they begin.
Failure input_boolean(std::string_view text, Datum& out) {
  struct Spelling {
    std::string_view word;
    size_t shortest;
    bool value;
  };
  constexpr std::array kSpellings{Spelling{"true", 1, true}, Spelling{"false", 1, false}, Spelling{"yes", 1, true},
                                  Spelling{"no", 1, false},  Spelling{"on", 2, true},     Spelling{"off", 2, false},
                                  Spelling{"1", 1, true},    Spelling{"0", 1, false}};
  text = trimmed(text);
  for (const Spelling& spelling : kSpellings) {
    if (text.size() < spelling.shortest || text.size() > spelling.word.size()) continue;
    if (!equals_word(text, spelling.word.substr(0, text.size()))) continue;
    out.integer = spelling.value ? 1 : 0;
    return Failure::none;
  }
  return Failure::invalid_text;
}

Failure input_real(Scratch& scratch, std::string_view text, bool single, Datum& out) {
  text = trimmed(text);
  if (text.empty()) return Failure::invalid_text;
  char* const copy = scratch.take(text.size() + 1);
  if (copy == nullptr) return Failure::too_large;
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  char* end = nullptr;
  errno = 0;
  const double value = single ? static_cast<double>(std::strtof(copy, &end)) : std::strtod(copy, &end);
  // The server looks at the range first, whatever follows the number.
  if (errno == ERANGE && (value == 0 || std::isinf(value))) return Failure::out_of_range;
  if (end != copy + text.size()) return Failure::invalid_text;
  out.real = value;
  return Failure::none;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Hexadecimal digits in braces or not, a hyphen after each group of four.
Failure input_uuid(Scratch& scratch, std::string_view text, Datum& out) {
  if (text.starts_with('{')) {
    if (!text.ends_with('}')) return Failure::invalid_text;
    text = text.substr(1, text.size() - 2);
  }
  char* const bytes = scratch.take(16);
  if (bytes == nullptr) return Failure::too_large;
  size_t at = 0;
  for (size_t i = 0; i < 16; ++i) {
    if (at + 2 > text.size()) return Failure::invalid_text;
    const int high = hex_digit(text[at]);
    const int low = hex_digit(text[at + 1]);
    if (high < 0 || low < 0) return Failure::invalid_text;
    bytes[i] = static_cast<char>(high * 16 + low);
    at += 2;
    if (i % 2 == 1 && i < 15 && at < text.size() && text[at] == '-') ++at;
  }
  return at == text.size() ? give_text(out, {bytes, 16}) : Failure::invalid_text;
}

// \x followed by hexadecimal digits; the older escape form is not read.
Failure input_bytea(Scratch& scratch, std::string_view text, Datum& out) {
  if (!text.starts_with("\\x")) {
    return text.contains('\\') ? Failure::unsupported_form : give_text(out, text);
  }
  text.remove_prefix(2);
  char* const bytes = scratch.take(text.size() / 2);
  if (bytes == nullptr) return Failure::too_large;
  size_t size = 0;
  for (size_t at = 0; at < text.size(); at += 2) {
    if (is_space(text[at])) return Failure::unsupported_form;
    if (at + 1 == text.size()) return Failure::invalid_parameter;
    const int high = hex_digit(text[at]);
    const int low = hex_digit(text[at + 1]);
    if (high < 0 || low < 0) return Failure::invalid_parameter;
    bytes[size++] = static_cast<char>(high * 16 + low);
  }
  return give_text(out, {bytes, size});
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool equals_word(std::string_view text, std::string_view lower_case_word) {
  if (text.size() != lower_case_word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != lower_case_word[i]) return false;
  }
  return true;
}

Failure input(Scratch& scratch, Type type, std::string_view text, Datum& out) {
  out.state = State::value;
  switch (type) {
    case Type::boolean:
      return input_boolean(text, out);
    case Type::int2:
      return input_integer(text, INT16_MIN, INT16_MAX, out);
    case Type::int4:
      return input_integer(text, INT32_MIN, INT32_MAX, out);
    case Type::int8:
      return input_integer(text, INT64_MIN, INT64_MAX, out);
    case Type::float4:
    case Type::float8:
      return input_real(scratch, text, type == Type::float4, out);
    case Type::numeric:
      return numeric_from_text(scratch, text, out);
    case Type::text:
    case Type::varchar:
    case Type::bpchar:
    case Type::any_enum:
    case Type::jsonb:  // of a column: jsonb_out wrote it
      return give_text(out, text);
    case Type::bytea:
      return input_bytea(scratch, text, out);
    case Type::uuid:
      return input_uuid(scratch, text, out);
    case Type::date:
    case Type::time:
    case Type::timestamp:
    case Type::timestamptz:
      return input_time(type, trimmed(text), out);
    case Type::interval:
      return input_interval(trimmed(text), out);
    default:
      return Failure::unsupported_form;
  }
}

}  // namespace thalweg::rules
