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

nlohmann::json rules_check_document(std::span<const RuleProblem> problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const RuleProblem& problem : problems) {
    nlohmann::json document = {
        {"schema", problem.schema}, {"table", problem.table},       {"rule", nullptr}, {"step", nullptr},
        {"code", problem.code},     {"message", problem.message},   {"line", nullptr}, {"column", nullptr},
        {"offset", nullptr},        {"certain", problem.is_certain}};
    if (problem.rule) document["rule"] = *problem.rule;
    if (problem.step) document["step"] = *problem.step;
    if (problem.place) {
      document["line"] = problem.place->line;
      document["column"] = problem.place->column;
      document["offset"] = problem.place->offset;
    }
    list.push_back(std::move(document));
  }
  return {{"problems", list}};
}

}  // namespace thalweg::control
