// A stream's start, its queries at both databases, without the initial copy: takes the place of daemon/stream_start.cc,
// which the linker then leaves out. Slot, publications and the record at the destination are there from the beginning.

#include "daemon/stream_start.h"

#include <string>
#include <utility>

#include "apply/progress.h"
#include "capture/logical/slot.h"
#include "daemon/source_objects.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

namespace thalweg::daemon {

namespace {

base::Result<capture::SlotState> look_at_slot(const control::StreamDefinition& definition, const DatabaseWork& work,
                                              pg::SystemIdentity& identity, capture::SlotExpectation expected) {
  expected.slot = slot_name(definition.id);
  expected.application_name = capture::capture_application_name(definition.id);
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 pg::ReplicationStream::open(definition.source.conninfo, work.session(expected.application_name)));
  THALWEG_ASSIGN(identity, replication.identify());
  return capture::check_slot(replication, identity, expected);
}

}  // namespace

base::Result<SourceSlot> start_source(const control::StreamDefinition& definition, const DatabaseWork& work,
                                      const std::filesystem::path&, base::Lsn) {
  pg::SystemIdentity identity;
  THALWEG_ASSIGN(const capture::SlotState state, look_at_slot(definition, work, identity, {}));
  return SourceSlot{.identity = {.system_identifier = identity.system_identifier, .timeline = identity.timeline},
                    .history = pg::TimelineHistory(identity.timeline),
                    .confirmed_flush = state.confirmed_flush};
}

base::Result<StartedDestination> start_destination(const control::Delivery& delivery, const StartContext& context) {
  THALWEG_ASSIGN(pg::Connection destination,
                 pg::Connection::open(delivery.destination.conninfo,
                                      context.work.session("thalweg supervisor " + delivery.stream.id)));
  THALWEG_ASSIGN(const auto record, apply::find_stream(destination, delivery.stream.id));
  if (!record) return base::fail(base::ErrorCode::not_found, "the destination has not been registered");
  // As Starter::check_record: where others share the slot, backlogs, or the engine that captures, find a gap.
  const bool alone = !context.joins_capture;
  capture::SlotExpectation expected;
  expected.low_watermark = alone ? record->low_watermark : base::Lsn{};
  expected.system_identifier = record->source_system_identifier;
  expected.shared = !alone;
  pg::SystemIdentity identity;
  if (auto slot = look_at_slot(delivery.stream, context.work, identity, std::move(expected)); !slot) {
    return std::unexpected(slot.error());
  }
  if (context.check_backlog) THALWEG_TRY(context.check_backlog(record->low_watermark, record->source_timeline));
  StartedDestination started;
  started.identity = {.system_identifier = record->source_system_identifier, .timeline = record->source_timeline};
  started.low_watermark = record->low_watermark;
  // Nothing was copied: that their names differ is all that there is to say of the tables.
  for (const control::TableRef& table : delivery.stream.tables) {
    const control::TableRef& there = control::name_there(delivery.stream.names, table);
    apply::CatchUpSpan span;
    span.schema_name = there.schema;
    span.table_name = there.table;
    span.stream_schema = table.schema;
    span.stream_table = table.table;
    started.catch_up.push_back(std::move(span));
  }
  return started;
}

base::Result<bool> publishes_all(const control::StreamDefinition&, const DatabaseWork&) { return true; }

base::Result<void> add_late_constraints(const control::Delivery&, const StartContext&, base::Lsn) { return {}; }

}  // namespace thalweg::daemon
