#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

// Words of messages about changes of rows. The control plane knows them, too, and from them tells viewers the operation
// and the kind of an error, without the values that the message quotes: engine/contract/row-errors.json.

namespace thalweg::apply {

inline constexpr std::string_view kInsertInto = "INSERT into";
inline constexpr std::string_view kUpdateOf = "UPDATE of";
inline constexpr std::string_view kDeleteFrom = "DELETE from";
inline constexpr std::string_view kMissingRow = "the destination has no such row";

// The end of the message of a transaction that was retried in vain.
inline std::string retried_before(int times) {
  return times == 1 ? "; retried once before" : fmt::format("; retried {} times before", times);
}

}  // namespace thalweg::apply
