#pragma once

#include <compare>
#include <string>

#include "pg/connection.h"

namespace thalweg::instantiation {

struct TableName {
  std::string schema;
  std::string name;
  auto operator<=>(const TableName&) const = default;
  std::string quoted() const { return pg::quote_table(schema, name); }
};

}  // namespace thalweg::instantiation
