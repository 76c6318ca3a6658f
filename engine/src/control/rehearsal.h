#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/networks.h"
#include "control/desired_state.h"

// POST /v1/rehearsal: what the initial copy of a stream that does not exist yet would meet.

namespace thalweg::control {

struct RehearsalRequest {
  base::Conninfo source_conninfo;
  base::Conninfo destination_conninfo;
  std::vector<TableRef> tables;
  std::set<TableRef> inserts_only;       // of these
  TableTransformations transformations;  // of these
  DestinationNames names = {};           // of these
};
base::Result<RehearsalRequest> parse_rehearsal(std::string_view text);  // fails with invalid_request

struct RehearsalProblem {
  std::string outcome;  // refused: the stream would not start; left_out: the destination would lack this; not_tried
  std::string part, table, name, message, sqlstate, statement, cure, cure_sql;
};
nlohmann::json rehearsal_document(std::span<const RehearsalProblem> problems);

}  // namespace thalweg::control
