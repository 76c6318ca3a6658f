#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "simulation/relational.h"

namespace thalweg::simulation {

// Walks over a statement's text.
class StatementText {
 public:
  explicit StatementText(std::string_view text) : rest_(text) {}

  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // Everything up to `mark`, and the mark.
  bool skip_past(std::string_view mark) {
    const size_t at = rest_.find(mark);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + mark.size());
    return true;
  }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  // "name", quoted
  std::string name() { return quoted('"'); }
  // 'text' without quotes or backslashes in it
  std::string literal() { return quoted('\''); }
  // "schema"."table"
  int table() {
    name();
    if (!skip(".")) return -1;
    return table_by_name(name());
  }
  std::optional<size_t> number() {
    size_t value = 0;
    size_t digits = 0;
    while (digits < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[digits])) != 0) {
      value = value * 10 + static_cast<size_t>(rest_[digits++] - '0');
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    return value;
  }
  // $1
  std::optional<size_t> parameter() {
    if (!skip("$")) return std::nullopt;
    const auto found = number();
    return found ? std::optional<size_t>(*found - 1) : std::nullopt;
  }

 private:
  std::string quoted(char mark) {
    if (!skip(std::string_view(&mark, 1))) return {};
    const size_t end = rest_.find(mark);
    const std::string found(rest_.substr(0, end));
    rest_.remove_prefix(std::min(rest_.size(), end == std::string_view::npos ? rest_.size() : end + 1));
    return found;
  }
  std::string_view rest_;
};

}  // namespace thalweg::simulation
