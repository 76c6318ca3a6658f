// What a stream's start asks both databases, without the initial copy: takes the place of daemon/stream_start.cc, which
// the linker then leaves out.

#include "daemon/stream_start.h"

#include <chrono>

#include "apply/progress.h"
#include "capture/logical/slot.h"
#include "daemon/source_objects.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

namespace thalweg::daemon {

namespace {

base::Result<capture::SlotState> look_at_slot(const control::StreamDefinition& definition, pg::SystemIdentity& identity,
                                              bool shared) {
  const std::string application = capture::capture_application_name(definition.id);
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 pg::ReplicationStream::open(definition.source.conninfo, application));
  THALWEG_ASSIGN(identity, replication.identify());
  capture::SlotExpectation expected;
  expected.slot = slot_name(definition.id);
  expected.application_name = application;
  expected.shared = shared;
  return capture::check_slot(replication, identity, expected);
}

}  // namespace

base::Result<SourceSlot> start_source(const control::StreamDefinition& definition, const DatabaseWork& /*work*/) {
  pg::SystemIdentity identity;
  THALWEG_ASSIGN(const capture::SlotState state, look_at_slot(definition, identity, false));
  return SourceSlot{.identity = {.system_identifier = identity.system_identifier, .timeline = identity.timeline},
                    .history = pg::TimelineHistory(identity.timeline),
                    .confirmed_flush = state.confirmed_flush};
}

base::Result<StartedDestination> start_destination(const control::Delivery& definition, const StartContext&) {
  THALWEG_ASSIGN(pg::Connection destination,
                 pg::Connection::open(definition.destination.conninfo, {.search_path = "public"}));
  pg::SystemIdentity identity;
  if (auto slot = look_at_slot(definition, identity, true); !slot) return std::unexpected(slot.error());
  THALWEG_ASSIGN(const auto record, apply::find_stream(destination, definition.id));
  if (!record) return base::fail(base::ErrorCode::not_found, "the destination has not been registered");
  StartedDestination started;
  started.identity = {.system_identifier = record->source_system_identifier, .timeline = record->source_timeline};
  started.low_watermark = record->low_watermark;
  return started;
}

base::Result<bool> publishes_all(const control::StreamDefinition&, const DatabaseWork&) { return true; }

base::Result<void> add_late_constraints(const control::Delivery&, const StartContext&, base::Lsn) { return {}; }

}  // namespace thalweg::daemon
