#include "control/conflict_detection.h"

#include <algorithm>

#include <fmt/format.h>

#include "control/strict_json.h"

namespace thalweg::control {
namespace {

using nlohmann::json;

constexpr size_t kTablesMax = 1000;
constexpr size_t kColumnsMax = 1600;
constexpr size_t kIdentifierBytesMax = 256;  // NAMEDATALEN is 64 unless somebody built a server of their own

base::Result<ComparedTableDefinition> read_table(const json& value, const std::string& pointer) {
  ObjectReader reader(value, pointer);
  ComparedTableDefinition out;
  const bool has_schema = reader.member("schema", false) != nullptr;
  if (has_schema || reader.member("table", false) != nullptr) {
    out.schema = reader.string("schema", 1, kIdentifierBytesMax);
    out.table = reader.string("table", 1, kIdentifierBytesMax);
  }
  if (const json* const columns = reader.member("columns", false)) {
    if (out.table.empty()) reader.refuse("columns", "are those of one table: name it");
    if (!columns->is_array() || columns->empty() || columns->size() > kColumnsMax) {
      reader.refuse("columns", fmt::format("must be an array of 1 to {} names", kColumnsMax));
    } else {
      for (const json& column : *columns) {
        const bool fits = column.is_string() && !column.get_ref<const std::string&>().empty() &&
                          column.get_ref<const std::string&>().size() <= kIdentifierBytesMax;
        if (!fits || std::ranges::find(out.columns, column.get<std::string>()) != out.columns.end()) {
          reader.refuse("columns", fmt::format("must be names of 1 to {} bytes, each once", kIdentifierBytesMax));
          break;
        }
        out.columns.push_back(column.get<std::string>());
      }
    }
  }
  THALWEG_TRY(reader.finish());
  return out;
}

}  // namespace

base::Result<ConflictDetectionDefinition> read_conflict_detection(const json& value, const std::string& pointer) {
  if (!value.is_array() || value.size() > kTablesMax) {
    return std::unexpected(invalid_at(pointer, fmt::format("must be an array of at most {} tables", kTablesMax)));
  }
  ConflictDetectionDefinition out;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string at = fmt::format("{}/{}", pointer, i);
    THALWEG_ASSIGN(ComparedTableDefinition compared, read_table(value[i], at));
    const bool is_decided = std::ranges::any_of(out, [&](const ComparedTableDefinition& before) {
      return before.table.empty() || (before.schema == compared.schema && before.table == compared.table);
    });
    if (is_decided) return std::unexpected(invalid_at(at, "is of a table for which an entry before it decides"));
    out.push_back(std::move(compared));
  }
  return out;
}

void to_json(json& out, const ComparedTableDefinition& compared) {
  out = json::object();
  if (!compared.table.empty()) {
    out["schema"] = compared.schema;
    out["table"] = compared.table;
  }
  if (!compared.columns.empty()) out["columns"] = compared.columns;
}

}  // namespace thalweg::control
