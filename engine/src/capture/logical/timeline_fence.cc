#include "capture/logical/timeline_fence.h"

#include <fmt/format.h>

namespace thalweg::capture {

using base::ErrorCode;

base::Result<TimelineFence> TimelineFence::open(const base::Conninfo& conninfo, const std::string& application_name,
                                                const std::string& slot, int session_pid, int timeline) {
  THALWEG_ASSIGN(pg::ReplicationStream session, pg::ReplicationStream::open(conninfo, application_name));
  pg::Connection& connection = session.connection();
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.script("SELECT active_pid FROM pg_catalog.pg_replication_slots WHERE slot_name = " +
                                   connection.quote_literal(slot)));
  if (rows.integer(0, 0) != session_pid) {
    return base::fail(
        ErrorCode::connection_lost,
        fmt::format("the source's address leads to two servers: one reads the slot {}, another does not", slot),
        base::ErrorSide::source);
  }
  return TimelineFence(std::move(session), timeline);
}

base::Result<void> TimelineFence::check() {
  THALWEG_ASSIGN(const int now, session_.timeline());
  if (now == timeline_) return {};
  return base::fail(ErrorCode::connection_lost,
                    fmt::format("the source has gone from timeline {} to {}", timeline_, now), base::ErrorSide::source);
}

}  // namespace thalweg::capture
