#include "daemon/operator_connection.h"

#include <chrono>
#include <utility>

namespace thalweg::daemon {

base::Result<pg::Connection> open_for_operator(const base::Conninfo& conninfo, std::string application_name,
                                               OperatorSession session) {
  pg::ConnectOptions options;
  options.application_name = std::move(application_name);
  options.connect_timeout = std::chrono::seconds(3);
  options.abandon = session.abandon;
  options.lifetime = session.lifetime;
  options.answer_bytes_max = session.answer_bytes_max;
  THALWEG_ASSIGN(pg::Connection connection, pg::Connection::open(conninfo, options));
  THALWEG_TRY(connection.script("SET lock_timeout = '3s'"));
  return connection;
}

}  // namespace thalweg::daemon
