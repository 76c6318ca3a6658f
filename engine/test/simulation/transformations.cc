#include "simulation/transformations.h"

#include <fmt/format.h>

#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

using What = TableTransformation::What;
using Type = control::TransformationType;

constexpr uint32_t kBigint = 20;
constexpr const char* kMask = "masked";

// Keys stay, and so does what refers to them. A constant would be in a unique column twice; the sessions of the model
// take values of other types than text in binary form only.
What some_what(Scheduler& scheduler, const TableShape& shape, int column) {
  if (column == shape.key || column == shape.foreign || scheduler.chance(2)) return What::kept;
  const bool takes_constant = column != shape.unique && shape.columns[static_cast<size_t>(column)].type != kBigint;
  switch (scheduler.random(takes_constant ? 3 : 2)) {
    case 0:
      return What::dropped;
    case 1:
      return What::null;
    default:
      return What::constant;
  }
}

control::TransformationDefinition step(Type type, const std::string& column) {
  control::TransformationDefinition made;
  made.type = type;
  made.column = column;
  return made;
}

}  // namespace

void must_not_leak(std::string_view bytes, const char* where) {
  if (bytes.contains(kSecret)) fail("a value that a transformation hides is in {}", where);
}

Change TableTransformation::changed(const Change& change) const {
  Change made = change;
  const int toasted = shapes()[static_cast<size_t>(change.table)].toasted;
  if (toasted >= 0 && columns[static_cast<size_t>(toasted)].what == What::dropped) made.is_partial = false;
  for (Row* row : {&made.before, &made.after}) {
    for (size_t i = 0; i < row->size(); ++i) {
      if (columns[i].what == What::dropped || columns[i].what == What::null) (*row)[i].reset();
      if (columns[i].what == What::constant) (*row)[i] = kMask;
    }
  }
  return made;
}

TableShape TableTransformation::shape(const TableShape& source) const {
  TableShape made = source;
  made.name = name;
  for (size_t i = 0; i < columns.size(); ++i) {
    made.columns[i].name = columns[i].name;
    made.columns[i].is_gone = columns[i].what == What::dropped;
  }
  if (made.unique >= 0 && made.columns[static_cast<size_t>(made.unique)].is_gone) made.unique = -1;
  return made;
}

TableTransformation make_transformation(Scheduler& scheduler, const TableShape& shape) {
  TableTransformation made;
  made.name = scheduler.chance(2) ? shape.name : "the_" + shape.name;
  const bool drops_the_others = scheduler.chance(3);  // by the list of those that are kept
  std::vector<std::string> kept;
  bool any_dropped = false;
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const std::string& column = shape.columns[i].name;
    const bool is_last = kept.empty() && i + 1 == shape.columns.size();
    What what = some_what(scheduler, shape, static_cast<int>(i));
    if (is_last && what == What::dropped) what = What::null;  // a table keeps a column
    made.columns.push_back({.what = what, .name = column});
    if (what == What::dropped) {
      any_dropped = true;
      if (!drops_the_others) made.steps.push_back(step(Type::drop_column, column));
      continue;
    }
    std::string& name = made.columns.back().name;
    if (scheduler.chance(3)) name = "the_" + column;
    const bool is_named_first = scheduler.chance(2);
    auto renamed = step(Type::rename_column, column);
    renamed.to = name;
    if (name != column && is_named_first) made.steps.push_back(renamed);
    if (what != What::kept) {
      auto mask = step(Type::mask_column, is_named_first ? name : column);
      mask.with = what == What::null ? control::MaskWith::null : control::MaskWith::constant;
      if (what == What::constant) mask.value = kMask;
      made.steps.push_back(mask);
    }
    if (name != column && !is_named_first) made.steps.push_back(renamed);
    kept.push_back(name);
  }
  if (any_dropped && drops_the_others) {
    made.steps.push_back(step(Type::keep_columns, {}));
    made.steps.back().columns = kept;
  }
  return made;
}

std::string describe(const TableTransformation& transformation) {
  constexpr const char* kWhat[] = {"", " (dropped)", " (NULL)", " (masked)"};
  std::string text = transformation.name + ":";
  for (const TableTransformation::Column& column : transformation.columns) {
    text += fmt::format(" {}{}", column.name, kWhat[static_cast<int>(column.what)]);
  }
  return text;
}

}  // namespace thalweg::simulation
