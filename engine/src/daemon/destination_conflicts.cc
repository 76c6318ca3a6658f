#include "daemon/destination_conflicts.h"

#include <chrono>

#include "apply/conflict_log.h"
#include "daemon/operator_connection.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kPatience{10};  // twice what the control plane has

base::Result<pg::Connection> connect(const control::Delivery& definition, const std::atomic<bool>& abandon) {
  if (definition.send_to) {
    return base::fail(base::ErrorCode::invalid_request,
                      "The stream's conflict log is with the engine that applies: " + definition.send_to->engine);
  }
  return open_for_operator(definition.destination.conninfo, "thalweg conflict log " + definition.id,
                           {.abandon = &abandon, .lifetime = kPatience});
}

}  // namespace

base::Result<std::vector<telemetry::LoggedConflict>> logged_conflicts(const control::Delivery& definition,
                                                                      const telemetry::ConflictPart& part,
                                                                      const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition, abandon));
  return apply::list_conflicts(connection, definition.id, part);
}

base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const control::Delivery& definition,
                                                                  const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition, abandon));
  return apply::count_conflicts(connection, definition.id);
}

}  // namespace thalweg::daemon
