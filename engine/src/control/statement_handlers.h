#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/bind_names.h"
#include "base/error.h"

// The parameter statement_handlers of the desired document: statements of users that are executed at the destination
// instead of a change, behind it, in the place of one that fails, or at the end of each transaction
// (docs/decisions/statement-handlers.md).

namespace thalweg::control {

enum class HandlerMoment : uint8_t { instead, after, precommit, error };

std::string_view name_of(HandlerMoment when);

// Immutable once parsed.
struct StatementHandlerDefinition {
  std::string schema;  // with `table`, of the stream; both empty: any, or of precommit none
  std::string table;
  std::vector<std::string> operations = {};  // as they are written; empty: all, or of precommit none
  std::vector<std::string> errors = {};      // of error, as ErrorPolicyDefinition::error; empty: any
  HandlerMoment when = HandlerMoment::after;
  std::string statement = {};       // as it is written
  base::BoundStatement bound = {};  // the same, for the server
  bool is_of(std::string_view operation) const;
  bool operator==(const StatementHandlerDefinition&) const = default;
};

using StatementHandlerDefinitions = std::vector<StatementHandlerDefinition>;

// Fails with invalid_request that names the place below `pointer`.
base::Result<StatementHandlerDefinitions> read_statement_handlers(const nlohmann::json& value,
                                                                  const std::string& pointer);
void to_json(nlohmann::json& out, const StatementHandlerDefinition& handler);

}  // namespace thalweg::control
