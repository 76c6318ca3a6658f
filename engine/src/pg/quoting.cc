#include <fmt/format.h>

#include "pg/connection.h"

namespace thalweg::pg {

std::string quote_identifier(std::string_view name) {
  std::string quoted;
  quoted.reserve(name.size() + 2);
  quoted += '"';
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

std::string quote_table(std::string_view schema, std::string_view table) {
  return schema.empty() ? quote_identifier(table) : quote_identifier(schema) + "." + quote_identifier(table);
}

Parameter text_parameter(std::string_view text) {
  return {.bytes = std::as_bytes(std::span{text}), .type = {}, .is_null = false, .is_binary = false};
}

}  // namespace thalweg::pg
