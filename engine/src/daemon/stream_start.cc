#include "daemon/stream_start.h"

#include <future>
#include <optional>

#include <fmt/format.h>

#include "apply/progress.h"
#include "base/file.h"
#include "base/log.h"
#include "capture/logical/publication.h"
#include "capture/logical/slot.h"
#include "daemon/source_objects.h"
#include "instantiation/instantiation.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

namespace thalweg::daemon {
namespace {

using control::StreamDefinition;
using instantiation::Instantiation;

instantiation::InstantiationOptions instantiation_options(const StreamDefinition& definition) {
  instantiation::InstantiationOptions options;
  options.stream_id = definition.id;
  options.source_conninfo = definition.source.conninfo;
  options.destination_conninfo = definition.destination.conninfo;
  options.publication = publication_name(definition.id);
  for (const control::TableRef& table : definition.tables) options.tables.push_back({table.schema, table.table});
  options.stops_tables = definition.parameters.stops_tables();
  options.copy_workers = static_cast<int>(definition.parameters.copy_workers);
  options.copy_range_rows = definition.parameters.copy_range_rows;
  options.copy_index_memory_mb = definition.parameters.copy_index_memory_mb;
  options.initial_copy = definition.parameters.initial_copy;
  return options;
}

capture::SourcePlugin source_plugin(std::string_view parameter) {
  if (parameter == "pgoutput") return capture::SourcePlugin::pgoutput;
  return parameter == "thalweg" ? capture::SourcePlugin::thalweg : capture::SourcePlugin::automatic;
}

base::Result<pg::Connection> connect(const base::Conninfo& conninfo, const std::string& stream_id) {
  pg::ConnectOptions options;
  options.application_name = "thalweg supervisor " + stream_id;
  return pg::Connection::open(conninfo, options);
}

// Says which side failed: both messages of libpq look the same.
template <typename T>
base::Result<T> on_side(std::string_view side, const control::DatabaseRef& database, base::Result<T> result) {
  if (!result) result.error().message = std::string(side) + " \"" + database.name + "\": " + result.error().message;
  return result;
}

// Before the destinations have said which relations their tables are. What is published besides stays while a table is
// missing: it may be that one under another name. Appliers leave out what is none of theirs.
base::Result<void> publish_for_all(pg::Connection& source, const StreamDefinition& definition) {
  std::vector<capture::PublishedTable> wanted;
  for (const control::TableRef& table : definition.tables) wanted.push_back({table.schema, table.table});
  const std::string publication = publication_name(definition.id);
  THALWEG_ASSIGN(std::vector<capture::PublishedTable> tables, capture::existing_tables(source, wanted));
  if (tables.size() < wanted.size()) {
    THALWEG_ASSIGN(const auto present, capture::published_tables(source, publication));
    tables.insert(tables.end(), present.begin(), present.end());
  }
  return capture::ensure_publication(source, publication, tables);
}

CaptureIdentity identity_of(const pg::SystemIdentity& identity) {
  return {.system_identifier = identity.system_identifier, .timeline = identity.timeline};
}

// Two servers can pass for the source for a while: one that was promoted, and the one that it replaced.
base::Result<void> same_source(const CaptureIdentity& one, const CaptureIdentity& other) {
  if (one == other) return {};
  return base::fail(base::ErrorCode::connection_lost,
                    fmt::format("the source is a server on timeline {} now, and was one on timeline {} a moment ago",
                                other.timeline, one.timeline));
}

base::Result<CaptureIdentity> identity_of_source(const StreamDefinition& definition) {
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 on_side("Source", definition.source,
                         pg::ReplicationStream::open(definition.source.conninfo,
                                                     capture::capture_application_name(definition.id))));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, replication.identify());
  return identity_of(identity);
}

class Starter {
 public:
  Starter(const StreamDefinition& definition, const StartContext& context)
      : definition_(definition),
        context_(context),
        instantiation_(instantiation_options(definition), *context.progress, *context.stop) {}

  base::Result<StartedDestination> run();
  base::Result<void> late_constraints(base::Lsn applied);

 private:
  base::Result<void> look();
  base::Result<void> publish();
  base::Result<void> create();
  base::Result<void> attach();
  base::Result<void> register_and_prepare(base::Lsn consistent_point);
  base::Result<void> resume();
  base::Result<void> discard_superseded();
  base::Result<pg::CreatedSlot> make_copy_slot(std::optional<pg::ReplicationStream>& session);
  base::Result<void> check_record();
  base::Result<void> follow_timeline(base::Lsn end);
  void undo_creation();

  const StreamDefinition& definition_;
  const StartContext& context_;
  Instantiation instantiation_;
  std::optional<pg::Connection> source_;
  std::optional<pg::Connection> destination_;
  std::optional<apply::StreamRecord> record_;
  // One of several servers, or what an address leads to now: everything that is compared comes over this connection.
  std::optional<pg::ReplicationStream> replication_;
  pg::SystemIdentity identity_;
  int came_from_ = 0;
};

// Five connections, opened at once: one after the other they were most of what a start takes.
base::Result<void> Starter::look() {
  auto instantiation = std::async(std::launch::async, [this] { return instantiation_.connect(); });
  auto identity = std::async(std::launch::async, [this]() -> base::Result<pg::SystemIdentity> {
    THALWEG_ASSIGN(replication_, pg::ReplicationStream::open(definition_.source.conninfo,
                                                             capture::capture_application_name(definition_.id)));
    return replication_->identify();
  });
  auto source = std::async(std::launch::async, [this] { return connect(definition_.source.conninfo, definition_.id); });
  THALWEG_ASSIGN(destination_, on_side("Destination", definition_.destination,
                                       connect(definition_.destination.conninfo, definition_.id)));
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, definition_.id));
  THALWEG_ASSIGN(source_, on_side("Source", definition_.source, source.get()));
  THALWEG_ASSIGN(identity_, on_side("Source", definition_.source, identity.get()));
  return instantiation.get();
}

// Then which relations they are is noted, before a snapshot is taken.
base::Result<void> Starter::publish() {
  if (!context_.shares_capture) {
    std::vector<capture::PublishedTable> tables;
    for (const auto& table : instantiation_.published_tables()) tables.push_back({table.schema, table.name});
    THALWEG_TRY(capture::ensure_publication(*source_, publication_name(definition_.id), tables));
  }
  return instantiation_.identify();
}

void Starter::undo_creation() {
  // Best effort on top of a failure that is already the answer; dropping the stream does it again.
  auto log = [&](std::string_view what, const base::Result<void>& result) {
    if (!result) base::log_error("undo_failed", result.error(), {{"stream", definition_.id}, {"what", what}});
  };
  if (!context_.shares_capture) {
    log("slot", capture::drop_slot(*source_, slot_name(definition_.id),
                                   capture::capture_application_name(definition_.id), std::chrono::seconds(2)));
    log("publication", capture::drop_publication(*source_, publication_name(definition_.id)));
  }
  log("instantiation", Instantiation::forget(*destination_, definition_.id));
  log("progress", apply::forget_stream(*destination_, definition_.id));
}

base::Result<void> Starter::register_and_prepare(base::Lsn consistent_point) {
  THALWEG_TRY(apply::ensure_schema(*destination_));
  THALWEG_TRY(apply::register_stream(*destination_, {.stream_id = definition_.id,
                                                     .source_system_identifier = identity_.system_identifier,
                                                     .source_timeline = identity_.timeline,
                                                     .source_database = identity_.database,
                                                     .slot = slot_name(definition_.id),
                                                     .start_lsn = consistent_point,
                                                     .low_watermark = consistent_point}));
  return instantiation_.prepare();
}

base::Result<void> Starter::create() {
  const std::string application = capture::capture_application_name(definition_.id);
  // Without a record at the destination, a slot of this name is what a crash left between the two: nobody needs it.
  THALWEG_TRY(capture::drop_slot(*source_, slot_name(definition_.id), application, std::chrono::seconds(10)));
  // The publication first: decoding looks it up as of each change.
  THALWEG_TRY(publish());
  auto slot = capture::create_slot(definition_.source.conninfo, slot_name(definition_.id), application,
                                   source_plugin(definition_.parameters.source_plugin));
  if (!slot) {
    undo_creation();
    return std::unexpected(slot.error());
  }
  identity_ = slot->identity;  // of the server that has the slot, should there be several
  if (auto prepared = register_and_prepare(slot->slot.consistent_point); !prepared) {
    if (!destination_->broken()) undo_creation();
    return prepared;
  }
  base::log_event(base::LogLevel::info, "stream_created",
                  {{"stream", definition_.id},
                   {"consistent_point", base::to_string(slot->slot.consistent_point)},
                   {"plugin", pg::name_of(slot->plugin)}});
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, definition_.id));
  return instantiation_.copy(slot->slot.snapshot_name, slot->slot.consistent_point);
}

// Joins a capture that runs: what commits from the snapshot's position on comes through its queue.
base::Result<void> Starter::attach() {
  THALWEG_TRY(publish());
  std::optional<pg::ReplicationStream> session;
  THALWEG_ASSIGN(const pg::CreatedSlot slot, make_copy_slot(session));
  if (auto prepared = register_and_prepare(slot.consistent_point); !prepared) {
    if (!destination_->broken()) undo_creation();
    return prepared;
  }
  base::log_event(base::LogLevel::info, "destination_attached",
                  {{"stream", definition_.id},
                   {"destination", context_.destination},
                   {"consistent_point", base::to_string(slot.consistent_point)}});
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, definition_.id));
  return instantiation_.copy(slot.snapshot_name, slot.consistent_point);
}

base::Result<void> Starter::resume() {
  THALWEG_TRY(instantiation_.prepare());
  std::optional<pg::ReplicationStream> session;
  THALWEG_ASSIGN(const pg::CreatedSlot slot, make_copy_slot(session));
  base::log_event(base::LogLevel::info, "copy_resumed",
                  {{"stream", definition_.id}, {"consistent_point", base::to_string(slot.consistent_point)}});
  return instantiation_.copy(slot.snapshot_name, slot.consistent_point);
}

// What a table's copy has made obsolete. At each start: the engine may have died between the copy and this.
base::Result<void> Starter::discard_superseded() {
  THALWEG_ASSIGN(const auto gone, apply::discard_superseded(*destination_, definition_.id));
  for (const apply::Superseded& one : gone) {
    base::log_event(base::LogLevel::warning, "parked_transactions_discarded",
                    {{"stream", definition_.id},
                     {"table", one.table},
                     {"transactions", one.transactions},
                     {"why", "copied again at " + base::to_string(one.copied_at)}});
  }
  return instantiation_.show_copied();
}

// For a copy; `session` holds its snapshot. Positions of a copy are compared with those of the stream: both from one
// server.
base::Result<pg::CreatedSlot> Starter::make_copy_slot(std::optional<pg::ReplicationStream>& session) {
  THALWEG_ASSIGN(session, pg::ReplicationStream::open(definition_.source.conninfo,
                                                      capture::capture_application_name(definition_.id)));
  THALWEG_ASSIGN(const pg::SystemIdentity found, session->identify());
  THALWEG_TRY(same_source(identity_of(identity_), identity_of(found)));
  return session->create_slot(copy_slot_name(definition_.id, context_.destination), true);
}

base::Result<void> Starter::check_record() {
  // With other destinations beside it, the slot may be further than this one: its backlog has the rest.
  const bool alone = !context_.shares_capture;
  came_from_ = record_->source_timeline;
  std::optional<base::Lsn> end;
  const bool is_it = record_->source_system_identifier == identity_.system_identifier && !identity_.standby;
  if (is_it && came_from_ != identity_.timeline) {
    THALWEG_ASSIGN(end, capture::end_of_timeline(*replication_, identity_, came_from_));
  }
  auto checked = capture::check_slot(*replication_, identity_,
                                     {.slot = slot_name(definition_.id),
                                      .application_name = capture::capture_application_name(definition_.id),
                                      .low_watermark = alone ? record_->low_watermark : base::Lsn{},
                                      .system_identifier = record_->source_system_identifier,
                                      .shared = !alone || definition_.receive_from.has_value()});
  if (!checked && end && checked.error().code == base::ErrorCode::slot_lost) {
    checked.error().message += fmt::format(
        " It is on timeline {} and the stream on {}: what was promoted had no copy of the slot that was ready.",
        identity_.timeline, came_from_);
  }
  if (!checked) return std::unexpected(checked.error());
  if (context_.check_backlog) THALWEG_TRY(context_.check_backlog(record_->low_watermark, came_from_));
  return end ? follow_timeline(*end) : base::Result<void>{};
}

// After a failover: what the destination has is part of the new server's history, or nothing goes on.
base::Result<void> Starter::follow_timeline(base::Lsn end) {
  THALWEG_ASSIGN(const base::Lsn copied_to, Instantiation::youngest_snapshot(*destination_, definition_.id));
  THALWEG_TRY(
      apply::follow_timeline(*destination_, definition_.id,
                             {.from = came_from_, .to = identity_.timeline, .end = end, .copied_to = copied_to}));
  record_->source_timeline = identity_.timeline;
  base::log_event(base::LogLevel::warning, "timeline_followed",
                  {{"stream", definition_.id},
                   {"destination", context_.destination},
                   {"from", came_from_},
                   {"to", identity_.timeline},
                   {"switched_at", base::to_string(end)},
                   {"low_watermark", base::to_string(record_->low_watermark)}});
  return {};
}

base::Result<StartedDestination> Starter::run() {
  THALWEG_TRY(look());
  if (context_.session != CaptureIdentity{}) THALWEG_TRY(same_source(context_.session, identity_of(identity_)));
  if (record_) THALWEG_TRY(check_record());
  replication_.reset();  // a copy may take hours
  THALWEG_ASSIGN(instantiation::Assessment assessment, instantiation_.assess(!record_));
  if (!record_ || assessment.needs_snapshot) context_.set_phase("INSTANTIATING");
  if (!record_) {
    THALWEG_TRY(context_.shares_capture ? attach() : create());
  } else {
    THALWEG_TRY(publish());
    if (assessment.needs_snapshot) THALWEG_TRY(resume());
  }
  THALWEG_TRY(discard_superseded());
  StartedDestination started;
  if (assessment.needs_snapshot || assessment.needs_constraints) {
    THALWEG_ASSIGN(started.constraints_from, instantiation_.add_constraints(record_->low_watermark));
  }
  started.identity = {.system_identifier = record_->source_system_identifier, .timeline = record_->source_timeline};
  started.low_watermark = record_->low_watermark;
  THALWEG_ASSIGN(std::vector<instantiation::CopiedTable> copied, instantiation_.copied_tables());
  for (const auto& table : copied) {
    started.catch_up.push_back({.schema_name = table.table.schema,
                                .table_name = table.table.name,
                                .copied_from = table.copied_from,
                                .copied_to = table.copied_to,
                                .relation = {table.relation},
                                .stopped = table.stopped});
  }
  return started;
}

base::Result<void> Starter::late_constraints(base::Lsn applied) {
  THALWEG_TRY(instantiation_.assess(false));
  THALWEG_TRY(instantiation_.add_constraints(applied));
  return {};
}

}  // namespace

base::Result<StartedDestination> start_destination(const StreamDefinition& definition, const StartContext& context) {
  return Starter(definition, context).run();
}

base::Result<SourceSlot> start_source(const StreamDefinition& definition) {
  const auto at_source = [&]<typename T>(base::Result<T> result) {
    return on_side("Source", definition.source, std::move(result));
  };
  const std::string application = capture::capture_application_name(definition.id);
  const std::string slot = slot_name(definition.id);
  THALWEG_ASSIGN(pg::Connection source, at_source(connect(definition.source.conninfo, definition.id)));
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 at_source(pg::ReplicationStream::open(definition.source.conninfo, application)));
  THALWEG_ASSIGN(const pg::SystemIdentity identity, replication.identify());
  if (identity.standby) {
    return at_source(base::Result<SourceSlot>(
        base::fail(base::ErrorCode::source_read_only, "it is a standby now: no slot can be read there")));
  }
  // Where the server has no history to show, what is of other timelines is not believed.
  const auto history = replication.timeline_history(identity.timeline);
  if (!history && base::class_of(history.error().code) == base::ErrorClass::transient) {
    return std::unexpected(history.error());
  }
  // The publication first: decoding looks it up as of each change.
  THALWEG_TRY(publish_for_all(source, definition));
  THALWEG_ASSIGN(const pg::Rows found,
                 source.query("SELECT 1 FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", {slot}));
  if (found.size() == 0) {
    // A slot that somebody dropped is not made good by another: each destination finds the gap before it applies.
    THALWEG_ASSIGN(const capture::NewSlot made,
                   capture::create_slot(definition.source.conninfo, slot, application,
                                        source_plugin(definition.parameters.source_plugin)));
    base::log_event(base::LogLevel::info, "slot_created",
                    {{"stream", definition.id}, {"consistent_point", base::to_string(made.slot.consistent_point)}});
  }
  THALWEG_ASSIGN(const capture::SlotState state,
                 capture::check_slot(
                     replication, identity,
                     {.slot = slot, .application_name = application, .low_watermark = {}, .system_identifier = ""}));
  return SourceSlot{.identity = identity_of(identity),
                    .history = history.value_or(pg::TimelineHistory(identity.timeline)),
                    .confirmed_flush = state.confirmed_flush};
}

base::Result<StartedStream> start_stream(const StreamDefinition& definition, const StartContext& context) {
  std::error_code error;
  std::filesystem::create_directories(context.spill_directory, error);
  if (error) return std::unexpected(base::file_error(error.value(), "create " + context.spill_directory.string()));
  PipelineOptions options{.definition = definition,
                          .identity = {},
                          .catch_up = {},
                          .spill_directory = context.spill_directory,
                          .clock = context.clock,
                          .peering = context.peering};
  StartedStream started;
  if (!definition.send_to) {
    THALWEG_ASSIGN(StartedDestination destination, start_destination(definition, context));
    options.identity = std::move(destination.identity);
    options.catch_up = std::move(destination.catch_up);
    started.constraints_from = destination.constraints_from;
  } else {
    // The other half compares the destination's progress with the timeline that this one tells it.
    THALWEG_ASSIGN(options.identity, identity_of_source(definition));
  }
  started.pipeline = std::make_unique<Pipeline>(std::move(options));
  THALWEG_TRY(started.pipeline->start());
  return started;
}

base::Result<void> add_late_constraints(const StreamDefinition& definition, const StartContext& context,
                                        base::Lsn applied) {
  return Starter(definition, context).late_constraints(applied);
}

}  // namespace thalweg::daemon
