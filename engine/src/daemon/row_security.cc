#include "daemon/row_security.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "daemon/operator_connection.h"
#include "instantiation/row_security.h"

namespace thalweg::daemon {

using base::ErrorCode;
using base::ErrorSide;
using instantiation::TableName;

namespace {

// The error's table, by its name at that side.
std::optional<TableName> table_of(const base::Error& error, const control::Delivery& delivery, ErrorSide side) {
  for (const control::TableRef& table : delivery.stream.tables) {
    const auto& [schema, name] = side == ErrorSide::source ? table : control::name_there(delivery.stream.names, table);
    if (TableName named{schema, name}; named.quoted() == error.table) return named;
  }
  return std::nullopt;
}

}  // namespace

base::Error with_row_security(base::Error error, const control::Delivery& delivery, const std::atomic<bool>* abandon) {
  if (error.code != ErrorCode::insufficient_privilege) return error;
  for (const auto& [side, conninfo] : {std::pair{ErrorSide::source, delivery.stream.source.conninfo},
                                       std::pair{ErrorSide::destination, delivery.destination.conninfo}}) {
    if (base::side_of(error) != side) continue;
    const auto table = table_of(error, delivery, side);
    if (!table) return error;
    auto connection = open_for_operator(conninfo, "thalweg tables " + delivery.stream.id, {.abandon = abandon});
    if (!connection) return error;
    const auto checked = instantiation::check_row_security(*connection, {*table}, side);
    if (checked || checked.error().code != ErrorCode::insufficient_privilege) return error;
    error.message = fmt::format("{} PostgreSQL says: {}", checked.error().message, error.message);
  }
  return error;
}

}  // namespace thalweg::daemon
