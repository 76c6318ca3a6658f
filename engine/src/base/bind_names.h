#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

// SQL whose values have names, such as :new.amount: a statement of a user, for the server with numbered parameters.

namespace thalweg::base {

enum class BindKind : uint8_t {
  new_value,
  old_value,
  operation,
  schema,
  table,
  commit_time,
  commit_lsn,
  xid,
  sqlstate,
  error,
  constraint,
  kind
};

// A failure has these names, a change that succeeds has not.
constexpr bool is_of_failure(BindKind kind) {
  return kind == BindKind::sqlstate || kind == BindKind::error || kind == BindKind::constraint ||
         kind == BindKind::kind;
}

struct BindName {
  BindKind kind = BindKind::new_value;
  std::string column = {};  // of new_value and old_value: as the catalog has it
  bool operator==(const BindName&) const = default;
};

// As it is written: ":new.amount".
std::string written(const BindName& name);

struct BoundStatement {
  std::string sql = {};              // with $1, $2 ...
  std::vector<BindName> names = {};  // of $1, $2 ..., each once
  bool operator==(const BoundStatement&) const = default;
};

// Finds the bind names in one statement, for sessions with standard_conforming_strings on. Quotes, comments, casts and
// := have none. The error says in words what is wrong, and at which character: the statement is none that a
// transaction may contain, or more than one; a name is unknown; a parameter has a number; a quote is open.
std::expected<BoundStatement, std::string> bind_names(std::string_view text);

}  // namespace thalweg::base
