#pragma once

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "base/ids.h"
#include "simulation/server.h"

// Values as PostgreSQL writes them in text.

namespace thalweg::simulation {

inline int64_t integer(const Parameter& parameter) {
  int64_t value = 0;
  std::from_chars(parameter.bytes->data(), parameter.bytes->data() + parameter.bytes->size(), value);
  return value;
}

inline base::Lsn lsn(const Parameter& parameter) { return base::parse_lsn(*parameter.bytes).value_or(base::Lsn{}); }

inline std::string bytea(const std::string& bytes) {
  std::string text = "\\x";
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace thalweg::simulation
