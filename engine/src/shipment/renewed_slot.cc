#include "shipment/renewed_slot.h"

#include <optional>

#include <fmt/format.h>

#include "base/log.h"
#include "pg/replication_stream.h"

namespace thalweg::shipment {

namespace {

// Over the replication protocol, which takes no parameters. Whether the slot keeps WAL. None: there is none of this
// name.
base::Result<std::optional<bool>> keeps_wal(pg::Connection& source, const std::string& slot) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 source.script(fmt::format("SELECT restart_lsn IS NOT NULL AND wal_status IS DISTINCT FROM 'lost' FROM "
                                           "pg_catalog.pg_replication_slots WHERE slot_name = {}",
                                           source.quote_literal(slot))));
  return rows.size() == 0 ? std::optional<bool>{} : std::optional{rows.boolean(0, 0)};
}

}  // namespace

base::Result<void> renew_slot(const base::Conninfo& source, const std::string& slot,
                              const pg::ConnectOptions& session) {
  THALWEG_ASSIGN(auto stream, pg::ReplicationStream::open(source, session));
  THALWEG_ASSIGN(const auto keeps, keeps_wal(stream.connection(), slot));
  if (keeps.value_or(false)) return {};
  if (keeps) {
    THALWEG_TRY(stream.connection().script(
        fmt::format("SELECT pg_catalog.pg_drop_replication_slot({})", stream.connection().quote_literal(slot))));
  }
  THALWEG_ASSIGN(const base::Lsn kept, stream.create_physical_slot(slot, false));
  base::log_event(base::LogLevel::warning, "slot_renewed", {{"slot", slot}, {"kept_from", base::to_string(kept)}});
  return {};
}

}  // namespace thalweg::shipment
