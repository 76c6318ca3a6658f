#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

// Words of messages about changes of rows. The error queue finds them in the messages of older engines, which kept the
// table nowhere else (error_queue.cc).

namespace thalweg::apply {

inline constexpr std::string_view kInsertInto = "INSERT into";
inline constexpr std::string_view kUpdateOf = "UPDATE of";
inline constexpr std::string_view kDeleteFrom = "DELETE from";
inline constexpr std::string_view kMissingRow = "the destination has no such row";
// Causes by themselves, also to the control plane: engine/contract/row-errors.json.
inline constexpr std::string_view kRowDiffers = "the destination's row is not as the source's was before";
inline constexpr std::string_view kUnwritten = "the row is there, but was not written";
inline constexpr std::string_view kSeveralRows = "the destination has more than one such row";

// The end of the message of a change that an error handler was to settle.
inline std::string failed_handler(int number, std::string_view why) {
  return fmt::format("statement handler {}: {}", number, why);
}

}  // namespace thalweg::apply
