#include "rules/documents.h"

#include <optional>

#include "rules/utf8.h"

namespace thalweg::rules {

namespace {

constexpr std::string_view kBlanks = " \t\n\r";
constexpr std::string_view kEndsOfWords = " \t\n\r,:]}[{\"";

void skip_blanks(std::string_view& text) {
  while (!text.empty() && kBlanks.contains(text.front())) text.remove_prefix(1);
}

// Bytes of the string that begins there, with its quotes; 0: it does not end.
size_t string_bytes(std::string_view text) {
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return 0;
}

// Bytes of the value that begins there; 0: none does. Brackets are counted, so that depth costs no memory.
size_t value_bytes(std::string_view text) {
  size_t depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const size_t bytes = string_bytes(text.substr(at));
      if (bytes == 0) return 0;
      at += bytes;
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return 0;
      --depth;
      ++at;
    } else if (kEndsOfWords.contains(c)) {
      if (depth == 0) return 0;
      ++at;
      continue;
    } else {
      at = std::min(text.find_first_of(kEndsOfWords, at), text.size());
    }
    if (depth == 0) return at;
  }
  return 0;
}

std::optional<uint32_t> hexadecimal(std::string_view& text) {
  constexpr size_t kDigits = 4;
  if (text.size() < kDigits) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, kDigits)) {
    const char lower = static_cast<char>(c | 0x20);
    const bool is_letter = lower >= 'a' && lower <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(is_letter ? lower - 'a' + 10 : c - '0');
  }
  text.remove_prefix(kDigits);
  return value;
}

// \uXXXX, behind its u. Two of them make a character outside the basic plane. 0: neither.
size_t code_unit(std::string_view& text, char* out) {
  auto code = hexadecimal(text);
  if (!code || *code == 0) return 0;
  if (*code >= 0xD800 && *code < 0xDC00) {
    if (!text.starts_with("\\u")) return 0;
    text.remove_prefix(2);
    const auto low = hexadecimal(text);
    if (!low || *low < 0xDC00 || *low > 0xDFFF) return 0;
    code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
  } else if (*code >= 0xDC00 && *code <= 0xDFFF) {
    return 0;
  }
  return put_character(*code, out);
}

// Takes what one escape or one byte stands for off the front of a string without its quotes; 0: neither.
size_t take_piece(std::string_view& text, char* out) {
  const char c = text[0];
  text.remove_prefix(1);
  if (c != '\\') {
    *out = c;
    return c == '"' ? 0 : 1;
  }
  if (text.empty()) return 0;
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char escape = text[0];
  text.remove_prefix(1);
  if (escape == 'u') return code_unit(text, out);
  const size_t found = kEscapes.find(escape);
  if (found == std::string_view::npos) return 0;
  *out = kMeanings[found];
  return 1;
}

bool is_plain(std::string_view text) { return text.find_first_of("\"\\") == std::string_view::npos; }
bool is_quoted(std::string_view text) { return text.size() >= 2 && text.front() == '"' && text.back() == '"'; }

}  // namespace

DocumentKind kind_of(std::string_view document) {
  if (document.empty()) return DocumentKind::corrupt;
  const char c = document[0];
  switch (c) {
    case '{':
      return DocumentKind::object;
    case '[':
      return DocumentKind::array;
    case '"':
      return DocumentKind::string;
    case 't':
    case 'f':
      return document == "true" || document == "false" ? DocumentKind::boolean : DocumentKind::corrupt;
    case 'n':
      return document == "null" ? DocumentKind::null : DocumentKind::corrupt;
    default:
      return c == '-' || (c >= '0' && c <= '9') ? DocumentKind::number : DocumentKind::corrupt;
  }
}

DocumentParts::DocumentParts(std::string_view container)
    : rest_(container.substr(1)), is_object_(container[0] == '{') {}

bool DocumentParts::take(char wanted) {
  skip_blanks(rest_);
  if (!rest_.starts_with(wanted)) return false;
  rest_.remove_prefix(1);
  skip_blanks(rest_);
  return true;
}

bool DocumentParts::fail() {
  corrupt_ = true;
  return false;
}

bool DocumentParts::next() {
  const bool ends = take(is_object_ ? '}' : ']');
  if (ends) return rest_.empty() ? false : fail();
  if (!first_ && !take(',')) return fail();
  first_ = false;
  if (is_object_) {
    const size_t bytes = rest_.starts_with('"') ? string_bytes(rest_) : 0;
    if (bytes == 0) return fail();
    key_ = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    if (!take(':')) return fail();
  }
  const size_t bytes = value_bytes(rest_);
  if (bytes == 0) return fail();
  value_ = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return true;
}

Failure unquoted(Scratch& scratch, std::string_view quoted, Datum& out) {
  if (!is_quoted(quoted)) return Failure::corrupt;
  std::string_view rest = quoted.substr(1, quoted.size() - 2);
  if (is_plain(rest)) return give_text(out, rest);
  char* const text = scratch.take(rest.size() + kCharacterBytesMax);  // an escape is longer than what it stands for
  if (text == nullptr) return Failure::too_large;
  size_t size = 0;
  while (!rest.empty()) {
    const size_t bytes = take_piece(rest, text + size);
    if (bytes == 0) return Failure::corrupt;
    size += bytes;
  }
  return give_text(out, {text, size});
}

bool equals_unquoted(std::string_view quoted, std::string_view text) {
  if (!is_quoted(quoted)) return false;
  std::string_view rest = quoted.substr(1, quoted.size() - 2);
  if (is_plain(rest)) return rest == text;
  while (!rest.empty()) {
    char piece[kCharacterBytesMax];
    const size_t bytes = take_piece(rest, piece);
    if (bytes == 0 || !text.starts_with(std::string_view(piece, bytes))) return false;
    text.remove_prefix(bytes);
  }
  return text.empty();
}

}  // namespace thalweg::rules
