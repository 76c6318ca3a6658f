#include "capture/ruled_relations.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"

namespace thalweg::capture {
namespace {

using nlohmann::json;

constexpr size_t kBytesMax = size_t{64} << 20;

// The stream's tables: whoever changes their list has decided anew what each name means.
json tables_of(const StreamRules& rules) {
  json ruled = json::array();
  for (const auto& [table, sets] : rules.tables) ruled.push_back({table.first, table.second});
  json plain_tables = json::array();
  for (const TableKey& table : rules.plain_tables) plain_tables.push_back({table.first, table.second});
  return {{"ruled", ruled}, {"others", plain_tables}};
}

}  // namespace

RuledRelations read_ruled_relations(const StreamRules& rules, const std::string& source) {
  std::error_code missing;
  if (rules.relations_file.empty() || !std::filesystem::exists(rules.relations_file, missing)) return {};
  const auto text = base::read_file(rules.relations_file, kBytesMax);
  if (!text) {
    base::log_error("ruled_relations_unreadable", text.error());
    return {};
  }
  RuledRelations relations;
  try {
    const json in = json::parse(*text);
    if (in.at("source") != source || in.at("tables") != tables_of(rules)) return {};
    for (const json& row : in.at("relations")) {
      TableKey table(row.at(1).get<std::string>(), row.at(2).get<std::string>());
      if (rules.tables.contains(table) || rules.plain_tables.contains(table)) {
        relations.emplace(base::RelationId{row.at(0).get<uint32_t>()}, std::move(table));
      }
    }
  } catch (const json::exception& exception) {
    base::log_event(base::LogLevel::warning, "ruled_relations_unreadable",
                    {{"file", rules.relations_file.string()}, {"what", exception.what()}});
    return {};
  }
  return relations;
}

base::Result<void> note_ruled_relations(const StreamRules& rules, const std::string& source,
                                        const RuledRelations& relations) {
  if (rules.relations_file.empty()) return {};
  json rows = json::array();
  for (const auto& [relation, table] : relations) rows.push_back({relation.value, table.first, table.second});
  const json out = {{"source", source}, {"tables", tables_of(rules)}, {"relations", rows}};
  THALWEG_TRY(base::make_folders(rules.relations_file.parent_path()));
  return base::write_file_atomically(rules.relations_file, out.dump(-1, ' ', false, json::error_handler_t::replace),
                                     0600);
}

}  // namespace thalweg::capture
