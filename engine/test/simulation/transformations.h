#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/transformation_definitions.h"
#include "simulation/relational.h"
#include "simulation/scheduler.h"

// Transformations of tables as the seed makes them, and what they do, with nothing of the engine's.

namespace thalweg::simulation {

// Texts that a transformation hides begin with it. No byte of it may leave the engine that captures.
inline constexpr std::string_view kSecret = "q7#Zk!secret~w4J";
// Fails the world where it does; `where` it was found.
void must_not_leak(std::string_view bytes, const char* where);

struct TableTransformation {
  enum class What : uint8_t { kept, dropped, null, constant };
  struct Column {
    What what = What::kept;
    std::string name;  // at the destination
  };
  std::string name;  // the same
  std::vector<Column> columns;
  control::Transformations steps;

  // The destination has the value that the source has.
  bool keeps_value(size_t column) const { return columns[column].what == What::kept; }
  bool hides(size_t column) const { return !keeps_value(column); }
  Change changed(const Change& change) const;
  TableShape shape(const TableShape& source) const;
};
using Transformations = std::vector<std::optional<TableTransformation>>;  // by table

TableTransformation make_transformation(Scheduler& scheduler, const TableShape& shape);
std::string describe(const TableTransformation& transformation);

}  // namespace thalweg::simulation
