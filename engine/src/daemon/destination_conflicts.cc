#include "daemon/destination_conflicts.h"

#include <chrono>

#include "apply/conflict_log.h"
#include "daemon/operator_connection.h"
#include "pg/connection.h"

namespace thalweg::daemon {
namespace {

constexpr std::chrono::seconds kPatience{10};  // twice what the control plane has

base::Result<pg::Connection> connect(const control::Delivery& delivery, const std::atomic<bool>& abandon) {
  if (delivery.destination.send_to) {
    return base::fail(base::ErrorCode::invalid_request, "The stream's conflict log is with the engine that applies: " +
                                                            delivery.destination.send_to->engine);
  }
  return open_for_operator(delivery.destination.conninfo, "thalweg conflict log " + delivery.stream.id,
                           {.abandon = &abandon, .lifetime = kPatience});
}

}  // namespace

base::Result<telemetry::LoggedConflicts> logged_conflicts(const control::Delivery& delivery,
                                                          const telemetry::ConflictPart& part,
                                                          const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(delivery, abandon));
  return apply::list_conflicts(connection, delivery.stream.id, part);
}

base::Result<std::vector<telemetry::LoggedCount>> conflict_counts(const control::Delivery& delivery,
                                                                  const std::atomic<bool>& abandon) {
  THALWEG_ASSIGN(pg::Connection connection, connect(delivery, abandon));
  return apply::count_conflicts(connection, delivery.stream.id);
}

}  // namespace thalweg::daemon
