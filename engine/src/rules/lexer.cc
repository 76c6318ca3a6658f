#include "rules/lexer.h"

#include <utility>

namespace thalweg::rules {

namespace {

constexpr std::string_view kOperatorCharacters = "~!@#^&|`?+-*/%<>=";
constexpr std::string_view kMayEndInSign = "~!@#^&|`?%";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_word(char c) { return is_word_start(c) || is_digit(c) || c == '$'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

// Owner: one call of tokenize.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Ruled<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      auto token = next();
      if (!token) return std::unexpected(std::move(token).error());
      tokens.push_back(std::move(*token));
      if (tokens.back().kind == TokenKind::end) return tokens;
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Token token(TokenKind kind, std::string text, size_t start) const {
    return {.kind = kind, .text = std::move(text), .offset = static_cast<uint32_t>(start)};
  }
  std::unexpected<RuleError> refused(std::string message, size_t start) const {
    return refuse(std::move(message), static_cast<uint32_t>(start));
  }

  Ruled<Token> next() {
    const size_t start = at_;
    if (at_ == text_.size()) return token(TokenKind::end, "", start);
    const char c = peek();
    if (c == '\'') return quoted('\'', TokenKind::string);
    if (c == '"') return quoted('"', TokenKind::quoted);
    if (is_word_start(c)) return word();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == ':' && peek(1) == ':') {
      at_ += 2;
      return token(TokenKind::punctuation, "::", start);
    }
    if (c == '(' || c == ')' || c == ',' || c == '.') {
      ++at_;
      return token(TokenKind::punctuation, std::string(1, c), start);
    }
    if (kOperatorCharacters.contains(c)) return op();
    return refused(std::string("the character '") + c + "' has no meaning here", start);
  }

  Ruled<Token> quoted(char quote, TokenKind kind) {
    const size_t start = at_++;
    std::string value;
    for (;; ++at_) {
      if (at_ == text_.size()) return refused("a quote is not closed", start);
      if (peek() == quote && peek(1) != quote) break;
      if (peek() == quote) ++at_;
      value += peek();
    }
    ++at_;
    if (kind == TokenKind::quoted && value.empty()) return refused("a name is empty", start);
    if (kind == TokenKind::quoted && value.size() > kIdentifierBytesMax) return refused("a name is too long", start);
    return token(kind, std::move(value), start);
  }

  Ruled<Token> word() {
    const size_t start = at_;
    std::string value;
    for (; is_word(peek()) && at_ < text_.size(); ++at_) {
      const char c = peek();
      value += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    if (peek() == '\'' && (value == "e" || value == "b" || value == "x" || value == "n")) {
      return refused("strings are written '...', without a letter before them", start);
    }
    if (value.size() > kIdentifierBytesMax) return refused("a name is too long", start);
    return token(TokenKind::word, std::move(value), start);
  }

  Ruled<Token> number() {
    const size_t start = at_;
    bool decimal = false;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && peek(1) != '.') {
      decimal = true;
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      decimal = true;
      at_ += 1 + sign;
      while (is_digit(peek())) ++at_;
    }
    if (at_ < text_.size() && is_word(peek())) return refused("letters follow a number", at_);
    return token(decimal ? TokenKind::decimal : TokenKind::integer, std::string(text_.substr(start, at_ - start)),
                 start);
  }

  // PostgreSQL's rule: the longest run, which may end in + or - only if it holds one of kMayEndInSign.
  Ruled<Token> op() {
    const size_t start = at_;
    while (at_ < text_.size() && kOperatorCharacters.contains(peek())) ++at_;
    std::string value(text_.substr(start, at_ - start));
    if (value.contains("--") || value.contains("/*")) return refused("a condition has no comments", start);
    if (value.find_first_of(kMayEndInSign) == std::string::npos) {
      while (value.size() > 1 && (value.back() == '+' || value.back() == '-')) value.pop_back();
    }
    at_ = start + value.size();
    if (value == "!=") value = "<>";
    return token(TokenKind::op, std::move(value), start);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

size_t utf8_bytes(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    if (lead == 0) return i;
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : (lead & 0xF0) == 0xE0       ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || i + length > bytes.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(bytes[i + k]) & 0xC0) != 0x80) return i;
    }
    const auto second = length > 1 ? static_cast<unsigned char>(bytes[i + 1]) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
        (lead == 0xF4 && second > 0x8F)) {
      return i;
    }
    i += length;
  }
  return bytes.size();
}

Ruled<std::vector<Token>> tokenize(std::string_view text) {
  if (text.size() > kConditionBytesMax) {
    return refuse("the condition is longer than " + std::to_string(kConditionBytesMax) + " bytes", kConditionBytesMax);
  }
  if (const size_t good = utf8_bytes(text); good < text.size()) {
    return refuse("the condition is not UTF-8 from here on", static_cast<uint32_t>(good));
  }
  return Lexer(text).run();
}

}  // namespace thalweg::rules
