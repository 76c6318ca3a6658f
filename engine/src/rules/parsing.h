#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/lexer.h"
#include "rules/syntax.h"

// Internal to the parser: parser.cc reads operators, parsing_calls.cc what has a name.

namespace thalweg::rules {

enum Level : int {
  kOr = 1,
  kAnd,
  kNot,
  kIs,
  kComparison,
  kBetween,  // BETWEEN, IN, LIKE, ILIKE
  kOther,    // any other operator
  kAdd,
  kMultiply,
  kPower,
  kCollate,
  kSign,
  kCast,
};

// A node over arguments; its height is theirs and one.
Expression node(Syntax kind, uint32_t offset, std::vector<Expression> arguments = {}, std::string text = {});
std::vector<Expression> list(Expression first);
std::vector<Expression> list(Expression first, Expression second);

inline bool one_of(std::string_view word, const auto& words) { return std::ranges::find(words, word) != words.end(); }

// Owner: one call of parse.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Ruled<Expression> whole();

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t tokens) const { return tokens_[std::min(at_ + tokens, tokens_.size() - 1)]; }
  bool is_word(std::string_view text) const { return now().kind == TokenKind::word && now().text == text; }
  bool is_mark(std::string_view text) const { return now().kind == TokenKind::punctuation && now().text == text; }
  bool take_word(std::string_view text) { return is_word(text) && (++at_, true); }
  bool take_mark(std::string_view text) { return is_mark(text) && (++at_, true); }
  std::unexpected<RuleError> unexpected_token() const {
    if (now().kind == TokenKind::end) return refuse("the condition ends too early", now().offset);
    return refuse("'" + now().text + "' does not fit here", now().offset);
  }
  // `text`: a keyword, in small letters.
  Ruled<void> expect_word(std::string_view text) {
    if (take_word(text)) return {};
    std::string keyword(text);
    for (char& letter : keyword) letter = static_cast<char>(letter - 'a' + 'A');
    return refuse("expected '" + keyword + "' here", now().offset);
  }
  Ruled<void> expect_mark(std::string_view text) {
    if (!take_mark(text)) return refuse("expected '" + std::string(text) + "' here", now().offset);
    return {};
  }

  // An expression of operators that bind at least as tightly as `level`.
  Ruled<Expression> parse_from(int level);
  std::optional<int> level_of_infix() const;
  Ruled<Expression> parse_infix(Expression left, int level);
  // AND and OR have any number of arguments: a long list does not nest.
  Ruled<Expression> parse_logical(Expression left, Syntax kind, int level, uint32_t offset);
  Ruled<Expression> parse_is(Expression left, const Token& token);
  Ruled<Expression> parse_between(Expression left, const Token& token);
  Ruled<Expression> parse_prefix();
  Ruled<Expression> parse_primary();
  Ruled<Expression> parse_column(Row row, uint32_t offset);
  Ruled<Expression> parse_word(const Token& token);
  // `date '2026-01-31'`: the type, and its string is now().
  std::optional<std::string_view> typed_literal();
  std::optional<std::string_view> take_type_name();
  Ruled<Expression> parse_cast_to(Expression operand, uint32_t offset);
  Ruled<Expression> parse_cast(uint32_t offset);
  Ruled<Expression> parse_case(uint32_t offset);
  Ruled<Expression> parse_call(const Token& name);
  // Functions whose arguments are not a plain list: extract, position, substring, overlay, trim. None: a plain call.
  std::optional<Ruled<Expression>> parse_special(const Token& name);
  // `... FROM x)`, `... IN x)`.
  Ruled<Expression> parse_rest(const Token& name, std::string function, Expression first);
  Ruled<Expression> parse_substring(const Token& name, Expression first);
  Ruled<Expression> parse_overlay(const Token& name, Expression first);
  // The rest of both: `2 FOR 3)`, behind FROM.
  Ruled<Expression> parse_part(const Token& name, std::string function, std::vector<Expression> arguments);
  Ruled<Expression> parse_trim(const Token& name);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace thalweg::rules
