#include "daemon/row_security.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/operator_connection.h"
#include "instantiation/row_security.h"

namespace thalweg::daemon {

using base::ErrorCode;
using base::ErrorSide;
using instantiation::TableName;

base::Error with_row_security(base::Error error, const control::Delivery& definition,
                              const std::atomic<bool>* abandon) {
  if (error.code != ErrorCode::insufficient_privilege) return error;
  const auto table = std::ranges::find_if(definition.tables, [&](const control::TableRef& candidate) {
    return TableName{candidate.schema, candidate.table}.quoted() == error.table;
  });
  if (table == definition.tables.end()) return error;
  for (const auto& [side, conninfo] : {std::pair{ErrorSide::source, definition.source.conninfo},
                                       std::pair{ErrorSide::destination, definition.destination.conninfo}}) {
    if (base::side_of(error) != side) continue;
    auto connection = open_for_operator(conninfo, "thalweg tables " + definition.id, {.abandon = abandon});
    if (!connection) return error;
    const auto checked = instantiation::check_row_security(*connection, {{table->schema, table->table}}, side);
    if (checked || checked.error().code != ErrorCode::insufficient_privilege) return error;
    error.message = fmt::format("{} PostgreSQL says: {}", checked.error().message, error.message);
  }
  return error;
}

}  // namespace thalweg::daemon
