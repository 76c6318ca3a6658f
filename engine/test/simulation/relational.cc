#include "simulation/relational.h"

#include <fmt/format.h>

namespace thalweg::simulation {

namespace {

std::string show(const Row& row) {
  std::string text = "(";
  for (const Value& value : row) {
    text += text.size() > 1 ? ", " : "";
    if (!value) {
      text += "NULL";
    } else if (value->size() == 8 && (*value)[0] == '\0') {
      uint64_t number = 0;
      for (const char c : *value) number = number << 8 | static_cast<unsigned char>(c);
      text += std::to_string(number);
    } else {
      text += value->size() > 24 ? fmt::format("'{}...' {} bytes", value->substr(0, 16), value->size())
                                 : fmt::format("'{}'", *value);
    }
  }
  return text + ")";
}

bool unique_is_free(const Table& table, const TableShape& shape, const Row& row, const std::string& except) {
  if (shape.unique < 0 || !row[static_cast<size_t>(shape.unique)]) return true;
  const auto column = static_cast<size_t>(shape.unique);
  for (const auto& [key, other] : table.rows) {
    if (key != except && other[column] == row[column]) return false;
  }
  return true;
}

}  // namespace

std::string int8_value(int64_t number) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(7 - i)] = static_cast<char>(number >> (8 * i));
  return bytes;
}

const std::vector<TableShape>& shapes() {
  static const std::vector<TableShape> kShapes{
      {.name = "account", .oid = 20001, .columns = {{"id", 20}, {"amount", 20}, {"note", 25}}, .key = 0, .toasted = 2},
      {.name = "entry",
       .oid = 20002,
       .columns = {{"id", 20}, {"code", 25}, {"account", 20}, {"amount", 20}},
       .key = 0,
       .unique = 1,
       .foreign = 2,
       .parent = 0},
      {.name = "journal", .oid = 20003, .columns = {{"number", 20}, {"text", 25}}},
  };
  return kShapes;
}

namespace {

std::vector<TableShape>& changing_shapes_there() {
  static std::vector<TableShape> there = shapes();
  return there;
}

}  // namespace

const std::vector<TableShape>& shapes_there() { return changing_shapes_there(); }

void set_shapes_there(std::vector<TableShape> shapes) { changing_shapes_there() = std::move(shapes); }

int table_by_name(const std::string& name) {
  for (size_t i = 0; i < shapes_there().size(); ++i) {
    if (shapes_there()[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

size_t TableShape::attribute(size_t column) const {
  size_t number = 0;
  for (size_t i = 0; i <= column; ++i) number += columns[i].is_gone ? 0 : 1;
  return number;
}

Row whole_row(const TableShape& shape, const Row& values) {
  Row row(shape.columns.size());
  size_t next = 0;
  for (size_t i = 0; i < row.size() && next < values.size(); ++i) {
    if (!shape.columns[i].is_gone) row[i] = values[next++];
  }
  return row;
}

Data empty_data() { return Data(shapes().size()); }

bool apply_change(Data& data, const Change& change, UniqueCheck unique) {
  const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
  Table& table = data[static_cast<size_t>(change.table)];
  if (change.kind == Change::Kind::truncate) {
    table = {};
    return true;
  }
  const bool removes = change.kind != Change::Kind::insert;
  const bool adds = change.kind != Change::Kind::remove;
  if (shape.key < 0) {
    if (removes) {
      const auto found = table.bag.find(change.before);
      if (found == table.bag.end()) return false;
      if (--found->second == 0) table.bag.erase(found);
    }
    if (adds) ++table.bag[change.after];
    return true;
  }
  const auto key = static_cast<size_t>(shape.key);
  const std::string before = removes ? *change.before[key] : std::string();
  const std::string after = adds ? *change.after[key] : std::string();
  if (removes && !table.rows.contains(before)) return false;
  if (adds && (!removes || before != after) && table.rows.contains(after)) return false;
  if (adds && unique == UniqueCheck::at_once && !unique_is_free(table, shape, change.after, removes ? before : after))
    return false;
  if (removes) table.rows.erase(before);
  if (adds) table.rows[after] = change.after;
  return true;
}

bool keeps_unique(const Data& data, const Change& change) {
  const TableShape& shape = shapes()[static_cast<size_t>(change.table)];
  if (change.after.empty() || shape.key < 0) return true;
  const Table& table = data[static_cast<size_t>(change.table)];
  const auto row = table.rows.find(*change.after[static_cast<size_t>(shape.key)]);
  return row == table.rows.end() || unique_is_free(table, shape, row->second, row->first);
}

std::string describe(const Change& change) {
  constexpr const char* kNames[] = {"insert", "update", "remove", "truncate"};
  return fmt::format("{} {} {} {}", kNames[static_cast<int>(change.kind)],
                     shapes()[static_cast<size_t>(change.table)].name, change.before.empty() ? "" : show(change.before),
                     change.after.empty() ? "" : show(change.after));
}

std::string describe_difference(const Data& actual, const Data& expected) {
  std::string text;
  for (size_t i = 0; i < actual.size(); ++i) {
    for (const auto& [key, row] : actual[i].rows) {
      const auto found = expected[i].rows.find(key);
      if (found == expected[i].rows.end()) {
        text += fmt::format("\n  {} has {}, which should not be there", shapes()[i].name, show(row));
      } else if (found->second != row) {
        text += fmt::format("\n  {} has {} instead of {}", shapes()[i].name, show(row), show(found->second));
      }
    }
    for (const auto& [key, row] : expected[i].rows) {
      if (!actual[i].rows.contains(key)) text += fmt::format("\n  {} lacks {}", shapes()[i].name, show(row));
    }
    for (const auto& [row, count] : actual[i].bag) {
      const auto found = expected[i].bag.find(row);
      const int wanted = found == expected[i].bag.end() ? 0 : found->second;
      if (wanted != count)
        text += fmt::format("\n  {} has {} times {}, not {}", shapes()[i].name, count, show(row), wanted);
    }
    for (const auto& [row, count] : expected[i].bag) {
      if (!actual[i].bag.contains(row))
        text += fmt::format("\n  {} lacks {} times {}", shapes()[i].name, count, show(row));
    }
  }
  return text;
}

}  // namespace thalweg::simulation
