#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "capture/logical/publication.h"
#include "capture/wal/wal_start.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"
#include "daemon/source_slot.h"
#include "daemon/stream_start.h"
#include "shipment/source_identity.h"

namespace thalweg::daemon {
namespace {

using control::StreamDefinition;

// A table that came without a replica identity waits for one: published, its updates would fail at the source, and a
// destination says only later that it lacks one.
base::Result<void> leave_out_unidentified(pg::Connection& source, const StreamDefinition& definition,
                                          std::vector<capture::PublishedTable>& tables) {
  THALWEG_ASSIGN(const auto identified, capture::identified_tables(source, tables));
  THALWEG_ASSIGN(const auto published, capture::published_tables(source, publications_of(definition.id).changes));
  std::erase_if(tables, [&](const capture::PublishedTable& table) {
    return std::ranges::find(identified, table) == identified.end() &&
           std::ranges::find(published, table) == published.end();
  });
  return {};
}

// Before the destinations have said which relations their tables are. Other published tables stay while a table is
// missing: one may be it under another name. Appliers leave out what is none of theirs.
base::Result<capture::StreamTables> tables_for_all(pg::Connection& source, const StreamDefinition& definition) {
  std::vector<capture::PublishedTable> wanted;
  for (const control::TableRef& table : definition.tables) wanted.push_back({table.schema, table.table});
  const pg::PublicationNames publications = publications_of(definition.id);
  THALWEG_ASSIGN(const std::vector<capture::PublishedTable> existing, capture::existing_tables(source, wanted));
  capture::StreamTables tables;
  for (const capture::PublishedTable& table : existing) {
    const bool inserts_only = definition.inserts_only.contains({table.schema_name, table.table_name});
    (inserts_only ? tables.inserts : tables.changes).push_back(table);
  }
  if (existing.size() < wanted.size()) {
    const auto keep = [&](std::vector<capture::PublishedTable>& in,
                          const std::string& publication) -> base::Result<void> {
      THALWEG_ASSIGN(const auto present, capture::published_tables(source, publication));
      std::ranges::copy_if(present, std::back_inserter(in), [&](const capture::PublishedTable& table) {
        return std::ranges::find(existing, table) == existing.end();
      });
      return {};
    };
    THALWEG_TRY(keep(tables.changes, publications.changes));
    THALWEG_TRY(keep(tables.inserts, publications.inserts));
  }
  THALWEG_TRY(leave_out_unidentified(source, definition, tables.changes));
  return tables;
}

// A slot whose WAL this engine did not stage, or has lost, is of no use: another takes its place, and each destination
// finds the gap before it applies.
base::Result<void> drop_slot_without_mining(pg::Connection& source, const StreamDefinition& definition,
                                            const std::filesystem::path& folder) {
  THALWEG_ASSIGN(const auto state, capture::WalFolder(folder).read_state());
  if (state) return {};
  THALWEG_ASSIGN(const pg::Rows left,
                 source.query("SELECT 1 FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND slot_type = "
                              "'physical'",
                              {slot_name(definition.id)}));
  if (left.size() == 0) return {};
  return capture::drop_slot(source, slot_name(definition.id), capture::capture_application_name(definition.id),
                            std::chrono::seconds(10));
}

// The position with which the session goes on. Changes that a destination lacks may be gone by now: it says so itself,
// and the others go on.
base::Result<base::Lsn> goes_on_at(const std::filesystem::path& folder, const shipment::WalIdentity& wal,
                                   base::Lsn again_from) {
  capture::WalFolder mined(folder);
  auto reached = capture::check_mining(mined, wal, again_from);
  if (reached && reached->again_until) return again_from;
  if (!reached && again_from && reached.error().code == base::ErrorCode::position_gap) {
    reached = capture::check_mining(mined, wal, {});
  }
  if (!reached) return std::unexpected(std::move(reached.error()));
  return reached->state.at.confirmed;
}

base::Result<SourceSlot> prepare_source(const StreamDefinition& definition, const DatabaseWork& work,
                                        const std::filesystem::path& folder, base::Lsn again_from) {
  const auto at_source = [&]<typename T>(base::Result<T> result) {
    return on_side("Source", definition.source.name, std::move(result));
  };
  const std::string application = capture::capture_application_name(definition.id);
  const std::string slot = slot_name(definition.id);
  THALWEG_TRY(at_source(work.end_given_up(definition.source.conninfo)));
  THALWEG_ASSIGN(pg::Connection source, at_source(connect(definition.source.conninfo, definition.id, work)));
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 at_source(pg::ReplicationStream::open(definition.source.conninfo, capture_session(definition, work))));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, replication.identify());
  if (identity.standby && !definition.source.reads_standby) {
    return at_source(base::Result<SourceSlot>(
        base::fail(base::ErrorCode::source_read_only, "it is a standby now: no slot can be read there")));
  }
  // Where the server has no history to show, what is of other timelines is not believed.
  const auto history = replication.timeline_history(identity.timeline);
  if (!history && base::class_of(history.error().code) == base::ErrorClass::transient) {
    return std::unexpected(history.error());
  }
  shipment::WalIdentity wal;
  if (mines(definition)) {
    THALWEG_ASSIGN(wal, at_source(shipment::identify(replication)));
    THALWEG_TRY(drop_slot_without_mining(source, definition, folder));
    THALWEG_TRY(at_source(renew_slot(definition, wal, work, folder)));
    note_left_behind(definition, wal, source, folder);
  }
  THALWEG_ASSIGN(const pg::Rows found,
                 source.query("SELECT 1 FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", {slot}));
  // The publications first: decoding looks them up as of each change.
  THALWEG_ASSIGN(const capture::StreamTables tables, tables_for_all(source, definition));
  THALWEG_TRY(publish_tables(source, definition, tables, found.size() == 0, work));
  base::Lsn made_at;
  if (found.size() == 0) {
    // A slot that somebody dropped is not made good by another: each destination finds the gap before it applies.
    THALWEG_ASSIGN(const capture::NewSlot made, make_slot(definition, work, slot, folder));
    made_at = made.slot.consistent_point;
    base::log_event(base::LogLevel::info, "slot_created",
                    {{"stream", definition.id}, {"consistent_point", base::to_string(made.slot.consistent_point)}});
  }
  THALWEG_ASSIGN(const capture::SlotState state, capture::check_slot(replication, identity,
                                                                     {.slot = slot,
                                                                      .application_name = application,
                                                                      .low_watermark = {},
                                                                      .system_identifier = "",
                                                                      .at_standby = definition.source.reads_standby,
                                                                      .is_physical = mines(definition)}));
  base::Lsn confirmed = state.confirmed_flush;
  if (mines(definition)) {
    THALWEG_ASSIGN(confirmed, goes_on_at(folder, wal, again_from));
  }
  return SourceSlot{.identity = identity_of(identity),
                    .history = history.value_or(pg::TimelineHistory(identity.timeline)),
                    .confirmed_flush = confirmed,
                    .made_at = made_at};
}

}  // namespace

base::Result<SourceSlot> start_source(const StreamDefinition& definition, const DatabaseWork& work,
                                      const std::filesystem::path& folder, base::Lsn again_from) {
  auto prepared = prepare_source(definition, work, folder, again_from);
  if (!prepared && work.is_given_up()) log_undone(definition, work.end_given_up(definition.source.conninfo));
  return prepared;
}

base::Result<bool> publishes_all(const StreamDefinition& definition, const DatabaseWork& work) {
  THALWEG_ASSIGN(pg::Connection source,
                 on_side("Source", definition.source.name, connect(definition.source.conninfo, definition.id, work)));
  THALWEG_ASSIGN(const capture::StreamTables tables, tables_for_all(source, definition));
  return capture::are_published(source, publications_of(definition.id), tables);
}

}  // namespace thalweg::daemon
