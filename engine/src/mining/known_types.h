#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "mining/send_form.h"

// The base types whose values can be converted.

namespace thalweg::mining {

struct KnownType {
  Convert convert = nullptr;
  std::array<uint8_t, 4> parts = {};  // SendForm::parts
};

// Of those that PostgreSQL brings, by pg_type.oid. Null: none of them.
std::optional<KnownType> known_type(uint32_t type);
// Of those of an extension, by their names. Null: none of them.
Convert type_of_extension(std::string_view extension, std::string_view type);

}  // namespace thalweg::mining
