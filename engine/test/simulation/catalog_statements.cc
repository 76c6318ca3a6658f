// Apply's queries of the destination's catalog: the statements of engine/src/metadata and data_layer.cc.

#include <charconv>

#include <fmt/format.h>

#include "simulation/destination_session.h"

namespace thalweg::simulation {

namespace {

const TableShape* shape_by_oid(const Parameter& parameter) {
  uint32_t oid = 0;
  std::from_chars(parameter.bytes->data(), parameter.bytes->data() + parameter.bytes->size(), oid);
  for (const TableShape& shape : shapes_there()) {
    if (shape.destination_oid() == oid) return &shape;
  }
  return nullptr;
}

Outcome columns_of(const TableShape& shape) {
  std::vector<Row> found;
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    if (shape.columns[i].is_gone) continue;
    found.push_back({shape.columns[i].name, std::to_string(shape.attribute(i)), std::to_string(shape.columns[i].type),
                     "f", "f", "t"});
  }
  return rows(std::move(found));
}

bool is_referenced(const TableShape& shape) {
  for (const TableShape& other : shapes_there()) {
    if (other.parent >= 0 && &shapes_there()[static_cast<size_t>(other.parent)] == &shape) return true;
  }
  return false;
}

Outcome indexes_of(const TableShape& shape) {
  std::vector<Row> found;
  if (shape.key >= 0) {
    const std::string column = std::to_string(shape.attribute(static_cast<size_t>(shape.key)));
    found.push_back({std::to_string(shape.key_index()), "t", "t", column, "t", "f", is_referenced(shape) ? "t" : "f",
                     "t", "f", "f", "f", column});
  }
  if (shape.unique >= 0) {
    const std::string column = std::to_string(shape.attribute(static_cast<size_t>(shape.unique)));
    found.push_back(
        {std::to_string(shape.unique_index()), "f", "t", column, "f", "f", "f", "t", "f", "f", "f", column});
  }
  return rows(std::move(found));
}

Outcome foreign_keys_of(const TableShape& shape) {
  if (shape.foreign < 0) return rows({});
  const TableShape& parent = shapes_there()[static_cast<size_t>(shape.parent)];
  const std::string key = std::to_string(parent.attribute(static_cast<size_t>(parent.key)));
  return rows(
      {{std::to_string(parent.key_index()), fmt::format("{{{}}}", shape.attribute(static_cast<size_t>(shape.foreign))),
        fmt::format("{{{}}}", key), key, std::to_string(parent.destination_oid())}});
}

Outcome type(const std::string& oid) {
  if (oid == "20") {
    return rows({{"b", "1016", "0", "0", "0", "t", "f", "bigint", {}, {}, "pg_catalog.int8", "pg_catalog.int8send"}});
  }
  if (oid == "25") {
    return rows({{"b", "1009", "0", "0", "0", "t", "f", "text", {}, {}, "pg_catalog.text", "pg_catalog.textsend"}});
  }
  return rows({});
}

}  // namespace

Outcome DestinationSession::catalog_statement(const std::string& sql, const Parameters& parameters, bool& known) {
  const auto is = [&](const char* beginning) { return sql.starts_with(beginning); };
  if (is("SELECT FROM pg_catalog.pg_extension")) {
    return rows(destination_.has_data_layer() ? std::vector<Row>{{}} : std::vector<Row>{});
  }
  if (is("SELECT c.oid, c.relkind, pg_catalog.hashtextextended(")) {
    const int table = table_by_name(*parameters[1].bytes);
    if (table < 0) return rows({});
    return rows({{std::to_string(shapes()[static_cast<size_t>(table)].destination_oid()), "r",
                  std::to_string(destination_.table_version(static_cast<size_t>(table))), "f"}});
  }
  if (is("SELECT c.oid, pg_catalog.hashtextextended(")) {
    std::vector<Row> versions;
    for (size_t table = 0; table < shapes().size(); ++table) {
      const std::string oid = std::to_string(shapes()[table].destination_oid());
      if (parameters[0].bytes->find(oid) == std::string::npos) continue;
      versions.push_back({oid, std::to_string(destination_.table_version(table))});
    }
    return rows(std::move(versions));
  }
  if (is("SELECT t.typtype, t.typarray")) return type(*parameters[0].bytes);
  const bool of_table = is("SELECT attname, attnum, atttypid") || is("SELECT i.indexrelid") || is("SELECT f.conindid");
  if (!of_table) {
    known = false;
    return {};
  }
  const TableShape* const shape = shape_by_oid(parameters[0]);
  if (shape == nullptr) return rows({});
  return is("SELECT attname") ? columns_of(*shape) : is("SELECT i.") ? indexes_of(*shape) : foreign_keys_of(*shape);
}

}  // namespace thalweg::simulation
