#include "pg/one_statement.h"

namespace thalweg::pg {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9') || c == '$'; }

// The place behind the quote that ends what begins at `from`; two quotes are one of the text.
size_t end_of_quoted(std::string_view sql, size_t from, char quote, bool escapes) {
  for (size_t at = from; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      if (at + 1 >= sql.size() || sql[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  return kNowhere;
}

// The place behind $tag$...$tag$ that begins at `from`; `from` + 1 if no such quote begins there.
size_t end_of_dollar_quoted(std::string_view sql, size_t from) {
  size_t tag_end = from + 1;
  if (tag_end < sql.size() && is_name_start(sql[tag_end])) {
    while (tag_end < sql.size() && is_name(sql[tag_end]) && sql[tag_end] != '$') ++tag_end;
  }
  if (tag_end >= sql.size() || sql[tag_end] != '$') return from + 1;
  const std::string_view tag = sql.substr(from, tag_end - from + 1);
  const size_t end = sql.find(tag, tag_end + 1);
  return end == kNowhere ? kNowhere : end + tag.size();
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace

// Source: the lexical structure in PostgreSQL's documentation, 4.1.
bool is_one_statement(std::string_view sql) {
  size_t at = 0;
  while (at < sql.size()) {
    const char c = sql[at];
    const char next = at + 1 < sql.size() ? sql[at + 1] : '\0';
    if (is_name_start(c)) {
      const bool escapes = (c == 'e' || c == 'E') && next == '\'';
      if (escapes) {
        at = end_of_quoted(sql, at + 2, '\'', true);
      } else {
        while (at < sql.size() && is_name(sql[at])) ++at;
      }
    } else if (c == '\'' || c == '"') {
      at = end_of_quoted(sql, at + 1, c, false);
    } else if (c == '$') {
      at = end_of_dollar_quoted(sql, at);
    } else if ((c == '-' && next == '-') || (c == '/' && next == '*')) {
      return false;
    } else if (c == ';') {
      for (size_t rest = at + 1; rest < sql.size(); ++rest) {
        if (!is_space(sql[rest])) return false;
      }
      return true;
    } else {
      ++at;
    }
    if (at == kNowhere) return false;
  }
  return true;
}

}  // namespace thalweg::pg
