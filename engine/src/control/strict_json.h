#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

// Reads JSON that somebody else wrote: every member is asked for by name, what nobody asked for is an error, and each
// error names the place by its JSON pointer (RFC 6901).

namespace thalweg::control {

// Valid UTF-8, no member twice, nothing after the document. Fails with invalid_request.
base::Result<nlohmann::json> parse_strict(std::string_view text);

// One JSON object. Keeps references to `value` and the first error; check finish() after the last member.
class ObjectReader {
 public:
  ObjectReader(const nlohmann::json& value, std::string pointer);

  // The member, or nullptr when it is absent (an error if required) or an earlier error stands.
  const nlohmann::json* member(std::string_view name, bool required);
  std::string string(std::string_view name, size_t length_min, size_t length_max);
  uint64_t unsigned_integer(std::string_view name);
  bool boolean(std::string_view name, bool otherwise);  // optional

  // Members that were not asked for are errors.
  base::Result<void> finish();

  void refuse(std::string_view member, std::string_view why);
  std::string pointer(std::string_view member) const;
  bool failed() const { return error_.has_value(); }

 private:
  const nlohmann::json& value_;
  std::string pointer_;
  std::vector<std::string> known_;
  std::optional<base::Error> error_;
};

base::Error invalid_at(std::string_view pointer, std::string_view why);

}  // namespace thalweg::control
