#include "control/destination_names.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace thalweg::control {
namespace {

constexpr size_t kIdentifierBytesMax = 63;
constexpr std::array<std::string_view, 3> kReservedSchemas = {"pg_catalog", "information_schema", "thalweg"};

bool is_reserved(const std::string& schema) {
  return schema.starts_with("pg_") || std::ranges::find(kReservedSchemas, schema) != kReservedSchemas.end();
}

}  // namespace

const TableRef& name_there(const DestinationNames& names, const TableRef& table) {
  const auto found = names.find(table);
  return found == names.end() ? table : found->second;
}

DestinationNames reversed(const DestinationNames& names) {
  DestinationNames reversed;
  for (const auto& [table, there] : names) reversed.emplace(there, table);
  return reversed;
}

base::Result<TableRef> read_destination_name(ObjectReader& reader, const TableRef& table) {
  const nlohmann::json* const value = reader.member("destination", false);
  if (!value) return table;
  ObjectReader name(*value, reader.pointer("destination"));
  TableRef there{name.string("schema", 1, kIdentifierBytesMax), name.string("table", 1, kIdentifierBytesMax)};
  if (!name.failed() && there.schema != table.schema && is_reserved(there.schema)) {
    name.refuse("schema", "is a schema of PostgreSQL or of Thalweg");
  }
  THALWEG_TRY(name.finish());
  return there;
}

base::Result<void> check_destination_names(const std::vector<TableRef>& tables, const DestinationNames& names,
                                           const std::string& pointer) {
  const std::set<TableRef> of_stream(tables.begin(), tables.end());
  std::set<TableRef> taken;
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto named = names.find(tables[i]);
    if (named == names.end()) continue;
    const TableRef& there = named->second;
    const std::string at = fmt::format("{}/{}/destination", pointer, i);
    if (of_stream.contains(there)) {
      return std::unexpected(
          invalid_at(at, fmt::format("is the name of another table of the stream: {}.{}", there.schema, there.table)));
    }
    if (!taken.insert(there).second) {
      return std::unexpected(
          invalid_at(at, fmt::format("is the name of two tables: {}.{}", there.schema, there.table)));
    }
  }
  return {};
}

}  // namespace thalweg::control
