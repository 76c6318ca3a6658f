#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/rule_error.h"

namespace thalweg::rules {

inline constexpr size_t kConditionBytesMax = size_t{64} << 10;
inline constexpr size_t kIdentifierBytesMax = 63;  // PostgreSQL's NAMEDATALEN - 1

enum class TokenKind : uint8_t { end, word, quoted, string, integer, decimal, op, punctuation };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // words folded to lower case, quotes taken off, != as <>
  uint32_t offset = 0;
};

// The tokens of a condition as PostgreSQL's scanner cuts them, `end` last. Refused: what is longer than
// kConditionBytesMax, bytes that are not UTF-8, comments, and strings other than '...' (E'', U&'', B'', X'', $$).
Ruled<std::vector<Token>> tokenize(std::string_view text);

// How many bytes from the front are well-formed UTF-8 without a zero byte.
size_t utf8_bytes(std::string_view bytes);

}  // namespace thalweg::rules
