#include "daemon/source_servers.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "daemon/source_objects.h"
#include "pg/replication_stream.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using base::ServerRole;
using control::StreamDefinition;

constexpr int kDecodingStandbyVersion = 160'000;
constexpr std::chrono::milliseconds kReplayLook{50};
constexpr std::chrono::seconds kReplayPatience{15};

std::string application_name(const StreamDefinition& definition) { return "thalweg supervisor " + definition.id; }

base::Result<pg::Connection> connect(const StreamDefinition& definition, ServerRole role) {
  return pg::Connection::open(definition.source.conninfo.for_role(role),
                              {.application_name = application_name(definition)});
}

// A copy that a standby keeps of its primary's slot is not to be read.
base::Result<bool> has_slot(pg::Connection& connection, const StreamDefinition& definition) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT 1 FROM pg_catalog.pg_replication_slots s WHERE slot_name = $1 AND NOT "
                                  "(pg_is_in_recovery() AND coalesce((to_jsonb(s) ->> 'synced')::boolean, false))",
                                  {slot_name(definition.id)}));
  return rows.size() > 0;
}

// Whether there is a standby with the slot; a new stream has none anywhere.
struct Standby {
  bool has_slot = false;
};
base::Result<Standby> look_at_standby(const StreamDefinition& definition) {
  THALWEG_ASSIGN(pg::Connection connection, connect(definition, ServerRole::standby));
  if (connection.server_version() < kDecodingStandbyVersion) {
    return base::fail(ErrorCode::unsupported_version,
                      fmt::format("The standby of the source \"{}\" runs PostgreSQL {}, and a standby decodes from 16 "
                                  "on: read from the primary.",
                                  definition.source.name, connection.server_version() / 10'000),
                      base::ErrorSide::source);
  }
  THALWEG_ASSIGN(const bool found, has_slot(connection, definition));
  return Standby{found};
}

// How far the standby is behind what the primary had written when the publication was changed.
base::Error is_behind(pg::Connection& reader, const std::string& written) {
  const auto replayed = reader.query("SELECT pg_last_wal_replay_lsn()");
  return base::fail(ErrorCode::source_standby_behind,
                    fmt::format("The source's standby has not replayed the publication's change: it is at {}, and its "
                                "primary wrote {}.",
                                replayed ? replayed->text(0, 0) : "an unknown position", written))
      .error();
}

// Decoding looks the publication up as of each change: what is decoded and copied begins after it.
base::Result<void> await_publications(pg::Connection& reader, pg::Connection& primary,
                                      const pg::PublicationNames& names, const DatabaseWork& work) {
  THALWEG_ASSIGN(const std::string made, capture::publications_as_they_are(primary, names));
  THALWEG_ASSIGN(const pg::Rows written, primary.query("SELECT pg_current_wal_insert_lsn()"));
  const auto deadline = std::chrono::steady_clock::now() + kReplayPatience;
  while (true) {
    THALWEG_ASSIGN(const std::string replayed, capture::publications_as_they_are(reader, names));
    if (replayed == made) return {};
    if (work.is_given_up()) return base::fail(ErrorCode::engine_stopping, "The wait for the standby was interrupted");
    if (std::chrono::steady_clock::now() >= deadline) {
      return std::unexpected(is_behind(reader, std::string{written.text(0, 0)}));
    }
    std::this_thread::sleep_for(kReplayLook);
  }
}

bool is_at_standby(const StreamDefinition& definition) {
  return definition.source.reads_standby && definition.source.conninfo.role != ServerRole::primary;
}

base::Result<pg::Connection> open_primary_of(const StreamDefinition& definition, const DatabaseWork& work) {
  THALWEG_ASSIGN(pg::ReplicationStream reader,
                 pg::ReplicationStream::open(definition.source.conninfo, application_name(definition)));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, reader.identify());
  THALWEG_ASSIGN(pg::Connection primary,
                 capture::open_primary(primary_of(definition, work), identity.system_identifier));
  if (definition.force) THALWEG_TRY(primary.script("SET lock_timeout = '3s'"));
  return primary;
}

}  // namespace

base::Result<StreamDefinition> with_server_to_read(StreamDefinition definition) {
  base::Conninfo& conninfo = definition.source.conninfo;
  if (!definition.source.reads_standby) return definition;
  const auto standby = look_at_standby(definition);
  if (!standby && standby.error().code != ErrorCode::database_unreachable) return std::unexpected(standby.error());
  if (standby && standby->has_slot) {
    conninfo.role = ServerRole::standby;
    return definition;
  }
  auto primary = connect(definition, ServerRole::primary);
  if (!standby && !primary) {
    return base::fail(ErrorCode::database_unreachable,
                      fmt::format("Source \"{}\": {}", definition.source.name, standby.error().message),
                      base::ErrorSide::source);
  }
  if (!primary) {
    primary.error().message = fmt::format("The primary of the source \"{}\", which may have the stream's slot: {}",
                                          definition.source.name, primary.error().message);
    return std::unexpected(primary.error());
  }
  THALWEG_ASSIGN(const bool has, has_slot(*primary, definition));
  if (has) {
    conninfo.role = ServerRole::primary;
    return definition;
  }
  if (!standby) {
    return base::fail(ErrorCode::source_standby_missing,
                      fmt::format("Source \"{}\": {}", definition.source.name, standby.error().message),
                      base::ErrorSide::source);
  }
  conninfo.role = ServerRole::standby;
  return definition;
}

capture::PrimaryOfStandby primary_of(const StreamDefinition& definition, const DatabaseWork& work) {
  if (!definition.source.reads_standby) return {};
  return {.conninfo = definition.source.conninfo.for_role(ServerRole::primary),
          .application_name = application_name(definition),
          .stop = work.stop,
          .board = work.board};
}

base::Result<void> publish_tables(pg::Connection& reader, const StreamDefinition& definition,
                                  const capture::StreamTables& tables, bool before_slot, const DatabaseWork& work) {
  const pg::PublicationNames names = publications_of(definition.id);
  if (!is_at_standby(definition)) return capture::ensure_publications(reader, names, tables, before_slot);
  // A start that changes nothing needs no primary.
  THALWEG_ASSIGN(const bool is_so, capture::are_published(reader, names, tables));
  if (is_so) return {};
  THALWEG_ASSIGN(pg::Connection primary, open_primary_of(definition, work));
  THALWEG_TRY(capture::ensure_publications(primary, names, tables, before_slot));
  return await_publications(reader, primary, names, work);
}

base::Result<void> unpublish(pg::Connection& reader, const StreamDefinition& definition, const DatabaseWork& work) {
  const pg::PublicationNames names = publications_of(definition.id);
  if (!is_at_standby(definition)) return capture::drop_publications(reader, names);
  THALWEG_ASSIGN(pg::Connection primary, open_primary_of(definition, work));
  return capture::drop_publications(primary, names);
}

}  // namespace thalweg::daemon
