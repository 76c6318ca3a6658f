#include "daemon/source_slot.h"

#include <utility>

#include "base/log.h"
#include "capture/wal/left_behind.h"
#include "capture/wal/wal_start.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"
#include "shipment/renewed_slot.h"

namespace thalweg::daemon {
namespace {

using control::StreamDefinition;

capture::SourcePlugin source_plugin(control::SourcePlugin parameter) {
  switch (parameter) {
    case control::SourcePlugin::automatic:
      return capture::SourcePlugin::automatic;
    case control::SourcePlugin::pgoutput:
      return capture::SourcePlugin::pgoutput;
    case control::SourcePlugin::thalweg:
      return capture::SourcePlugin::thalweg;
  }
  std::unreachable();
}

}  // namespace

base::Result<pg::Connection> connect(const base::Conninfo& conninfo, const std::string& stream_id,
                                     const DatabaseWork& work) {
  return pg::Connection::open(conninfo, work.session("thalweg supervisor " + stream_id));
}

pg::ConnectOptions capture_session(const StreamDefinition& definition, const DatabaseWork& work) {
  return work.session(capture::capture_application_name(definition.id));
}

CaptureIdentity identity_of(const pg::SystemIdentity& identity) {
  return {.system_identifier = identity.system_identifier, .timeline = identity.timeline};
}

bool mines(const StreamDefinition& definition) { return definition.capture_kind == control::CaptureKind::wal; }

base::Result<capture::NewSlot> make_slot(const StreamDefinition& definition, const DatabaseWork& work,
                                         const std::string& name, const std::filesystem::path& folder) {
  if (!mines(definition)) {
    return capture::create_slot(definition.source.conninfo, name, capture_session(definition, work),
                                source_plugin(definition.parameters.source_plugin), primary_of(definition, work));
  }
  const pg::PublicationNames names = publications_of(definition.id);
  THALWEG_ASSIGN(capture::WalStart begun, capture::start_wal({.source = definition.source.conninfo,
                                                              .session = capture_session(definition, work),
                                                              .slot = name,
                                                              .copy_slot = copy_slot_name(definition.id),
                                                              .publications = {names.changes, names.inserts},
                                                              .folder = folder}));
  return capture::NewSlot{.stream = std::move(begun.stream),
                          .slot = std::move(begun.slot),
                          .plugin = pg::OutputPlugin::pgoutput,
                          .identity = std::move(begun.identity)};
}

base::Result<void> renew_slot(const StreamDefinition& definition, const shipment::WalIdentity& source,
                              const DatabaseWork& work, const std::filesystem::path& folder) {
  const capture::WalFolder mined(folder);
  THALWEG_ASSIGN(const auto state, mined.read_state());
  if (!state || state->system_identifier != std::to_string(source.system_identifier)) return {};
  THALWEG_ASSIGN(const auto left_at, mined.left_at(source));
  if (definition.wal_archive.empty() && !left_at) return {};
  return shipment::renew_slot(definition.source.conninfo, slot_name(definition.id), capture_session(definition, work));
}

void note_left_behind(const StreamDefinition& definition, const shipment::WalIdentity& wal, pg::Connection& source,
                      const std::filesystem::path& folder) {
  const auto note = [&]() -> base::Result<void> {
    const pg::PublicationNames names = publications_of(definition.id);
    THALWEG_ASSIGN(const auto tables, capture::MinedTables::read(source, {names.changes, names.inserts}));
    capture::WalFolder mined(folder);
    return capture::note_left_behind(mined, wal, tables, static_cast<uint64_t>(definition.capture_memory_mb) << 20);
  };
  if (auto noted = note(); !noted) {
    base::log_error("left_behind_not_noted", noted.error(), {{"stream", definition.id}});
  }
}

// Ending a given-up start at the servers is best effort: the next start, or the removal, does it again.
void log_undone(const StreamDefinition& definition, const base::Result<void>& ended) {
  if (!ended) base::log_error("undo_failed", ended.error(), {{"stream", definition.id}, {"what", "given up start"}});
}

}  // namespace thalweg::daemon
