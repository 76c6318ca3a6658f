#include "control/rehearsal.h"

#include <memory>

#include "control/desired_parts.h"
#include "control/strict_json.h"

namespace thalweg::control {

base::Result<RehearsalRequest> parse_rehearsal(std::string_view text) {
  THALWEG_ASSIGN(const nlohmann::json body, parse_strict(text));
  ObjectReader reader(body, "");
  RehearsalRequest request;
  THALWEG_ASSIGN(request.source_conninfo.text, read_conninfo(reader, "source"));
  THALWEG_ASSIGN(request.destination_conninfo.text, read_conninfo(reader, "destination"));
  THALWEG_ASSIGN(base::Networks networks, read_networks(reader));
  request.source_conninfo.within = std::make_shared<const base::Networks>(std::move(networks));
  request.destination_conninfo.within = request.source_conninfo.within;
  request.source_conninfo.side = base::ErrorSide::source;
  request.destination_conninfo.side = base::ErrorSide::destination;
  THALWEG_TRY(read_tables(reader, request.tables, request.inserts_only,
                          {.transformations = &request.transformations, .names = &request.names}));
  THALWEG_TRY(reader.finish());
  return request;
}

nlohmann::json rehearsal_document(std::span<const RehearsalProblem> problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const RehearsalProblem& problem : problems) {
    list.push_back({{"outcome", problem.outcome},
                    {"part", problem.part},
                    {"table", problem.table},
                    {"name", problem.name},
                    {"message", problem.message},
                    {"sqlstate", problem.sqlstate},
                    {"statement", problem.statement},
                    {"cure", problem.cure},
                    {"cure_sql", problem.cure_sql}});
  }
  return {{"problems", list}};
}

}  // namespace thalweg::control
