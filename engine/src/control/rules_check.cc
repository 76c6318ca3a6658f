#include "control/rules_check.h"

#include <memory>
#include <utility>

#include "control/desired_parts.h"
#include "control/strict_json.h"

namespace thalweg::control {

base::Result<RulesCheckRequest> parse_rules_check(std::string_view text) {
  THALWEG_ASSIGN(const nlohmann::json body, parse_strict(text));
  ObjectReader reader(body, "");
  RulesCheckRequest request;
  THALWEG_ASSIGN(request.source_conninfo.text, read_conninfo(reader, "source"));
  THALWEG_ASSIGN(base::Networks networks, read_networks(reader));
  request.source_conninfo.within = std::make_shared<const base::Networks>(std::move(networks));
  request.source_conninfo.side = base::ErrorSide::source;
  THALWEG_TRY(read_tables(reader, request.tables, request.inserts_only,
                          {.rules = &request.rules, .transformations = &request.transformations}));
  THALWEG_TRY(reader.finish());
  return request;
}

nlohmann::json rules_check_document(std::span<const RuleFinding> findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const RuleFinding& finding : findings) {
    nlohmann::json document = {
        {"schema", finding.schema}, {"table", finding.table},       {"rule", nullptr}, {"step", nullptr},
        {"code", finding.code},     {"message", finding.message},   {"line", nullptr}, {"column", nullptr},
        {"offset", nullptr},        {"certain", finding.is_certain}};
    if (finding.rule) document["rule"] = *finding.rule;
    if (finding.step) document["step"] = *finding.step;
    if (finding.place) {
      document["line"] = finding.place->line;
      document["column"] = finding.place->column;
      document["offset"] = finding.place->offset;
    }
    list.push_back(std::move(document));
  }
  return {{"findings", list}};
}

}  // namespace thalweg::control
