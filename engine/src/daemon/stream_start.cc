#include "daemon/stream_start.h"

#include <optional>

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
  for (const control::TableRef& table : definition.tables) options.tables.push_back({table.schema, table.table});
  options.copy_workers = static_cast<int>(definition.parameters.copy_workers);
  options.copy_range_rows = definition.parameters.copy_range_rows;
  options.initial_copy = definition.parameters.initial_copy;
  return options;
}

capture::SourcePlugin source_plugin(std::string_view parameter) {
  if (parameter == "pgoutput") return capture::SourcePlugin::pgoutput;
  return parameter == "thalweg" ? capture::SourcePlugin::thalweg : capture::SourcePlugin::automatic;
}

base::Result<pg::Connection> connect(const std::string& conninfo, const std::string& stream_id) {
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

class Starter {
 public:
  Starter(const StreamDefinition& definition, const StartContext& context)
      : definition_(definition),
        context_(context),
        instantiation_(instantiation_options(definition), *context.progress, *context.stop) {}

  base::Result<StartedStream> run();
  base::Result<void> late_constraints(base::Lsn applied);

 private:
  base::Result<void> look();
  base::Result<void> publish();
  base::Result<void> create();
  base::Result<void> register_and_prepare(const capture::NewSlot& slot);
  base::Result<void> resume();
  void undo_creation();

  const StreamDefinition& definition_;
  const StartContext& context_;
  Instantiation instantiation_;
  std::optional<pg::Connection> source_;
  std::optional<pg::Connection> destination_;
  std::optional<apply::StreamRecord> record_;
  pg::SystemIdentity identity_;
};

base::Result<void> Starter::look() {
  THALWEG_ASSIGN(destination_, on_side("Destination", definition_.destination,
                                       connect(definition_.destination.conninfo, definition_.id)));
  THALWEG_ASSIGN(source_, on_side("Source", definition_.source, connect(definition_.source.conninfo, definition_.id)));
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, definition_.id));
  THALWEG_ASSIGN(pg::ReplicationStream replication,
                 on_side("Source", definition_.source,
                         pg::ReplicationStream::open(definition_.source.conninfo,
                                                     capture::capture_application_name(definition_.id))));
  THALWEG_ASSIGN(identity_, replication.identify());
  return {};
}

base::Result<void> Starter::publish() {
  std::vector<capture::PublishedTable> tables;
  for (const control::TableRef& table : definition_.tables) tables.push_back({table.schema, table.table});
  return capture::ensure_publication(*source_, publication_name(definition_.id), tables);
}

void Starter::undo_creation() {
  // Best effort on top of a failure that is already the answer; dropping the stream does it again.
  auto log = [&](std::string_view what, const base::Result<void>& result) {
    if (!result) base::log_error("undo_failed", result.error(), {{"stream", definition_.id}, {"what", what}});
  };
  log("slot", capture::drop_slot(*source_, slot_name(definition_.id), capture::capture_application_name(definition_.id),
                                 std::chrono::seconds(2)));
  log("publication", capture::drop_publication(*source_, publication_name(definition_.id)));
  log("instantiation", Instantiation::forget(*destination_, definition_.id));
  log("progress", apply::forget_stream(*destination_, definition_.id));
}

base::Result<void> Starter::register_and_prepare(const capture::NewSlot& slot) {
  THALWEG_TRY(apply::ensure_schema(*destination_));
  THALWEG_TRY(apply::register_stream(*destination_, {.stream_id = definition_.id,
                                                     .source_system_identifier = slot.identity.system_identifier,
                                                     .source_timeline = slot.identity.timeline,
                                                     .source_database = slot.identity.database,
                                                     .slot = slot_name(definition_.id),
                                                     .start_lsn = slot.slot.consistent_point,
                                                     .low_watermark = slot.slot.consistent_point}));
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
  if (auto prepared = register_and_prepare(*slot); !prepared) {
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

base::Result<void> Starter::resume() {
  THALWEG_TRY(instantiation_.prepare());
  THALWEG_ASSIGN(
      pg::ReplicationStream replication,
      pg::ReplicationStream::open(definition_.source.conninfo, capture::capture_application_name(definition_.id)));
  THALWEG_ASSIGN(pg::CreatedSlot slot, replication.create_slot(copy_slot_name(definition_.id), true));
  base::log_event(base::LogLevel::info, "copy_resumed",
                  {{"stream", definition_.id}, {"consistent_point", base::to_string(slot.consistent_point)}});
  return instantiation_.copy(slot.snapshot_name, slot.consistent_point);
}

base::Result<StartedStream> Starter::run() {
  THALWEG_TRY(look());
  if (record_) {
    THALWEG_TRY(capture::check_slot(*source_, identity_,
                                    {.slot = slot_name(definition_.id),
                                     .application_name = capture::capture_application_name(definition_.id),
                                     .low_watermark = record_->low_watermark,
                                     .system_identifier = record_->source_system_identifier,
                                     .timeline = record_->source_timeline,
                                     .shared = definition_.receive_from.has_value()}));
  }
  THALWEG_ASSIGN(instantiation::Assessment assessment, instantiation_.assess(!record_));
  if (!record_ || assessment.needs_snapshot) context_.set_phase("INSTANTIATING");
  if (!record_) {
    THALWEG_TRY(create());
  } else {
    THALWEG_TRY(publish());
    if (assessment.needs_snapshot) THALWEG_TRY(resume());
  }
  StartedStream started;
  if (assessment.needs_snapshot || assessment.needs_constraints) {
    THALWEG_ASSIGN(started.constraints_from, instantiation_.add_constraints(record_->low_watermark));
  }
  PipelineOptions options{
      .definition = definition_,
      .identity = {.system_identifier = record_->source_system_identifier, .timeline = record_->source_timeline},
      .catch_up = {},
      .spill_directory = context_.spill_directory,
      .clock = context_.clock,
      .peering = context_.peering};
  THALWEG_ASSIGN(std::vector<instantiation::CopiedTable> copied, instantiation_.copied_tables());
  for (const auto& table : copied) {
    options.catch_up.push_back({table.table.schema, table.table.name, table.copied_from, table.copied_to});
  }
  started.pipeline = std::make_unique<Pipeline>(std::move(options));
  THALWEG_TRY(started.pipeline->start());
  return started;
}

base::Result<void> Starter::late_constraints(base::Lsn applied) {
  THALWEG_TRY(instantiation_.assess(false));
  THALWEG_TRY(instantiation_.add_constraints(applied));
  return {};
}

}  // namespace

base::Result<StartedStream> start_stream(const StreamDefinition& definition, const StartContext& context) {
  std::error_code error;
  std::filesystem::create_directories(context.spill_directory, error);
  if (error) return std::unexpected(base::file_error(error.value(), "create " + context.spill_directory.string()));
  if (!definition.send_to) return Starter(definition, context).run();
  StartedStream sending;
  sending.pipeline = std::make_unique<Pipeline>(PipelineOptions{.definition = definition,
                                                                .identity = {},
                                                                .catch_up = {},
                                                                .spill_directory = context.spill_directory,
                                                                .clock = context.clock,
                                                                .peering = context.peering});
  THALWEG_TRY(sending.pipeline->start());
  return sending;
}

base::Result<void> add_late_constraints(const StreamDefinition& definition, const StartContext& context,
                                        base::Lsn applied) {
  return Starter(definition, context).late_constraints(applied);
}

}  // namespace thalweg::daemon
