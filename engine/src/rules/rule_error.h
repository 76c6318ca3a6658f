#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace thalweg::rules {

// Why a condition was refused, and where in its text.
struct RuleError {
  std::string message;  // a sentence without its full stop
  uint32_t offset = 0;  // in bytes, from 0
  uint32_t line = 1;    // from 1
  uint32_t column = 1;  // in characters of UTF-8, from 1
};

template <typename T>
using Ruled = std::expected<T, RuleError>;

inline std::unexpected<RuleError> refuse(std::string message, uint32_t offset) {
  return std::unexpected(RuleError{.message = std::move(message), .offset = offset});
}

// Passes a refusal on to the caller, as THALWEG_TRY and THALWEG_ASSIGN do; RULES_ASSIGN declares its target.
#define RULES_TRY(expression)                            \
  do {                                                   \
    if (auto ruled_ = (expression); !ruled_) {           \
      return std::unexpected(std::move(ruled_).error()); \
    }                                                    \
  } while (false)
#define RULES_ASSIGN(target, expression)                                          \
  auto ruled_##target = (expression);                                             \
  if (!ruled_##target) return std::unexpected(std::move(ruled_##target).error()); \
  auto target = std::move(*ruled_##target)

// Fills line and column from the offset.
inline RuleError place_in(std::string_view text, RuleError error) {
  error.line = 1;
  error.column = 1;
  for (const char c : text.substr(0, error.offset)) {
    if (c == '\n') {
      ++error.line;
      error.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++error.column;
    }
  }
  return error;
}

}  // namespace thalweg::rules
