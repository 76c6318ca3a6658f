#pragma once

#include <compare>
#include <string>

namespace thalweg::control {

struct TableRef {
  std::string schema;
  std::string table;
  auto operator<=>(const TableRef&) const = default;
};

}  // namespace thalweg::control
