#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

// HMAC-SHA256 of values, which keeps joins: equal values become equal ones wherever the key is the same.

namespace thalweg::transform {

// Owner: one thread at a time.
class KeyedHash {
 public:
  explicit KeyedHash(std::string_view key);
  KeyedHash(KeyedHash&&) noexcept;
  KeyedHash& operator=(KeyedHash&&) noexcept;
  ~KeyedHash();

  // The first `digits` hexadecimal ones of the hash of `text`; there are 64.
  void write(std::string_view text, size_t digits, std::string& out);
  // `text`, in UTF-8, with another digit for each decimal one.
  void replace_digits(std::string_view text, std::string& out);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Settings of a session that computes the hashes in SQL: in hexadecimal, what HMAC puts in front of a value and of the
// inner hash. Both are as secret as the key.
inline constexpr std::string_view kInnerPadSetting = "thalweg.hash_inner_pad";
inline constexpr std::string_view kOuterPadSetting = "thalweg.hash_outer_pad";
// Stands before a value whose digits are replaced: its hash is not to be found where the value is masked with one.
inline constexpr std::string_view kDigitsPrefix = "digits:";

// For pg::ConnectOptions. With the startup packet they come to no log, and into no view of what sessions do: the text
// of a statement would, and its parameters with log_statement.
std::string session_settings(std::string_view key);

}  // namespace thalweg::transform
