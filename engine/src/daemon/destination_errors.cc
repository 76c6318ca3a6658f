#include "daemon/destination_errors.h"

#include <utility>

#include "apply/error_queue.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

control::ParkedTransactionView to_view(apply::ParkedTransaction parked) {
  return {.id = parked.id,
          .commit_lsn = parked.commit_lsn,
          .xid = parked.xid,
          .lcrs = parked.lcrs,
          .tables = std::move(parked.tables),
          .code = std::move(parked.code),
          .message = std::move(parked.message),
          .sqlstate = std::move(parked.sqlstate),
          .parked_at = std::move(parked.parked_at)};
}

base::Result<pg::Connection> connect(const control::StreamDefinition& definition) {
  if (definition.send_to) {
    return base::fail(base::ErrorCode::unknown_error_transaction,
                      "The stream's error queue is with the engine that applies: " + definition.send_to->engine);
  }
  pg::ConnectOptions options;
  options.application_name = "thalweg error queue " + definition.id;
  return pg::Connection::open(definition.destination.conninfo, options);
}

}  // namespace

base::Result<std::vector<control::ParkedTransactionView>> parked_errors(const control::StreamDefinition& definition) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition));
  THALWEG_ASSIGN(std::vector<apply::ParkedTransaction> parked, apply::list_parked(connection, definition.id));
  std::vector<control::ParkedTransactionView> out;
  for (apply::ParkedTransaction& one : parked) out.push_back(to_view(std::move(one)));
  return out;
}

base::Result<void> execute_parked_error(const control::StreamDefinition& definition, int64_t error_id) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition));
  return apply::execute_parked(std::move(connection), definition.id, error_id);
}

base::Result<void> remove_parked_error(const control::StreamDefinition& definition, int64_t error_id) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition));
  return apply::remove_parked(connection, definition.id, error_id);
}

}  // namespace thalweg::daemon
