#include "daemon/stream_start.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apply/progress.h"
#include "base/file.h"
#include "base/log.h"
#include "capture/logical/publication.h"
#include "capture/logical/slot.h"
#include "capture/wal/left_behind.h"
#include "capture/wal/wal_start.h"
#include "daemon/rule_sets.h"
#include "daemon/source_objects.h"
#include "daemon/source_servers.h"
#include "daemon/source_slot.h"
#include "instantiation/instantiation.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"
#include "shipment/source_identity.h"

namespace thalweg::daemon {
namespace {

using control::Delivery;
using control::StreamDefinition;
using instantiation::Instantiation;

instantiation::InstantiationOptions instantiation_options(const Delivery& delivery, pg::SessionBoard* board) {
  instantiation::InstantiationOptions options;
  options.stream_id = delivery.stream.id;
  options.source_conninfo = delivery.stream.source.conninfo;
  options.destination_conninfo = delivery.destination.conninfo;
  options.publications = publications_of(delivery.stream.id);
  for (const control::TableRef& table : delivery.stream.tables) options.tables.push_back({table.schema, table.table});
  for (const control::TableRef& table : delivery.stream.inserts_only) {
    options.inserts_only.insert({table.schema, table.table});
  }
  for (const auto& [table, code] : delivery.stream.accepted_code) {
    options.accepted_code[{table.schema, table.table}] = code;
  }
  for (const control::TableRules* const rules : {&delivery.stream.rules, &delivery.destination.rules}) {
    for (const auto& [table, sets] : *rules) options.rules[{table.schema, table.table}].push_back(rule_sets(sets));
  }
  for (const auto& [table, steps] : delivery.stream.transformations) {
    options.transformations[{table.schema, table.table}] = steps_of(steps, delivery.stream.mask_key);
  }
  for (const auto& [table, there] : delivery.stream.names) {
    options.names.add({table.schema, table.table}, {there.schema, there.table});
  }
  options.mask_key = delivery.stream.mask_key;
  options.source_name = delivery.stream.source.name;
  options.stops_tables = delivery.destination.parameters.stops_tables();
  options.copy_workers = static_cast<int>(delivery.destination.parameters.copy_workers);
  options.copy_range_rows = delivery.destination.parameters.copy_range_rows;
  options.copy_index_memory_mb = delivery.destination.parameters.copy_index_memory_mb;
  options.initial_copy = delivery.destination.parameters.initial_copy;
  options.board = board;
  return options;
}

constexpr std::chrono::seconds kUndoPatience{5};  // a stop waits for it

// Two servers can pass for the source for a while: one that was promoted, and the one that it replaced.
base::Result<void> same_source(const CaptureIdentity& before, const CaptureIdentity& now) {
  if (before == now) return {};
  return base::fail(base::ErrorCode::connection_lost,
                    fmt::format("the source is a server on timeline {} now, and was one on timeline {} a moment ago",
                                now.timeline, before.timeline),
                    base::ErrorSide::source);
}

class Starter {
 public:
  Starter(const Delivery& delivery, const StartContext& context)
      : delivery_(delivery),
        context_(context),
        instantiation_(instantiation_options(delivery, context.work.board), *context.progress, *context.work.stop) {}

  // nullopt: a table was truncated, rewritten or replaced before its turn to be copied. Another start copies it.
  base::Result<std::optional<StartedDestination>> run();
  base::Result<void> late_constraints(base::Lsn applied);
  bool is_new() const { return creates_; }  // the stream's slot was to be made, or has been

 private:
  base::Result<void> look();
  base::Result<void> publish(bool before_slot);
  base::Result<bool> create();
  base::Result<bool> attach();
  base::Result<void> await_capture();
  base::Result<bool> publishes(const std::string& publication, const std::vector<instantiation::TableName>& tables);
  base::Result<void> register_and_prepare(base::Lsn consistent_point);
  base::Result<bool> resume();
  base::Result<void> discard_superseded();
  base::Result<pg::CreatedSlot> make_copy_slot(std::optional<pg::ReplicationStream>& session);
  base::Result<void> check_record();
  base::Result<void> check_mined(std::optional<base::Lsn> end);
  base::Result<void> follow(std::optional<base::Lsn> end);
  base::Result<void> follow_timeline(base::Lsn end);
  void undo_creation();

  const Delivery& delivery_;
  const StartContext& context_;
  Instantiation instantiation_;
  std::optional<pg::Connection> source_;
  std::optional<pg::Connection> destination_;
  std::optional<apply::StreamRecord> record_;
  // One of several servers, or what an address leads to now: everything that is compared comes over this connection.
  std::optional<pg::ReplicationStream> replication_;
  pg::SystemIdentity identity_;
  int came_from_ = 0;
  bool creates_ = false;
};

// Five connections, opened at once: one after the other they were most of what a start takes.
base::Result<void> Starter::look() {
  auto instantiation = std::async(std::launch::async, [this] { return instantiation_.connect(); });
  auto identity = std::async(std::launch::async, [this]() -> base::Result<pg::SystemIdentity> {
    THALWEG_ASSIGN(replication_, pg::ReplicationStream::open(delivery_.stream.source.conninfo,
                                                             capture_session(delivery_.stream, context_.work)));
    return replication_->identify();
  });
  auto source = std::async(std::launch::async, [this] {
    return connect(delivery_.stream.source.conninfo, delivery_.stream.id, context_.work);
  });
  THALWEG_ASSIGN(destination_, on_side("Destination", delivery_.destination.name,
                                       connect(delivery_.destination.conninfo, delivery_.stream.id, context_.work)));
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, delivery_.stream.id));
  THALWEG_ASSIGN(source_, on_side("Source", delivery_.stream.source.name, source.get()));
  THALWEG_ASSIGN(identity_, on_side("Source", delivery_.stream.source.name, identity.get()));
  return instantiation.get();
}

// Then which relations they are is noted, before a snapshot is taken.
base::Result<void> Starter::publish(bool before_slot) {
  if (!context_.joins_capture) {
    const instantiation::PublishedTables published = instantiation_.published_tables();
    capture::StreamTables tables;
    for (const auto& table : published.changes) tables.changes.push_back({table.schema, table.name});
    for (const auto& table : published.inserts) tables.inserts.push_back({table.schema, table.name});
    THALWEG_TRY(publish_tables(*source_, delivery_.stream, tables, before_slot, context_.work));
  }
  return instantiation_.identify();
}

void Starter::undo_creation() {
  // Best effort on top of a failure that is already the answer; dropping the stream does it again.
  auto log = [&](std::string_view what, const base::Result<void>& result) {
    if (!result) base::log_error("undo_failed", result.error(), {{"stream", delivery_.stream.id}, {"what", what}});
  };
  if (!context_.joins_capture) {
    log("slot", capture::drop_slot(*source_, slot_name(delivery_.stream.id),
                                   capture::capture_application_name(delivery_.stream.id), std::chrono::seconds(2)));
    log("publication", unpublish(*source_, delivery_.stream));
  }
  log("instantiation", Instantiation::forget(*destination_, delivery_.stream.id));
  log("progress", apply::forget_stream(*destination_, delivery_.stream.id));
}

base::Result<void> Starter::register_and_prepare(base::Lsn consistent_point) {
  THALWEG_TRY(apply::ensure_schema(*destination_));
  THALWEG_TRY(apply::register_stream(*destination_, {.stream_id = delivery_.stream.id,
                                                     .source_system_identifier = identity_.system_identifier,
                                                     .source_timeline = identity_.timeline,
                                                     .source_database = identity_.database,
                                                     .slot = slot_name(delivery_.stream.id),
                                                     .start_lsn = consistent_point,
                                                     .low_watermark = consistent_point}));
  return instantiation_.prepare();
}

base::Result<bool> Starter::create() {
  creates_ = true;
  const std::string application = capture::capture_application_name(delivery_.stream.id);
  // Without a record at the destination, a slot of this name is what a crash left between the two: nobody needs it.
  THALWEG_TRY(capture::drop_slot(*source_, slot_name(delivery_.stream.id), application, std::chrono::seconds(10)));
  // The publications first: decoding looks them up as of each change.
  THALWEG_TRY(publish(true));
  auto slot = make_slot(delivery_.stream, context_.work, slot_name(delivery_.stream.id), context_.folder);
  if (!slot) {
    if (!context_.work.is_given_up()) undo_creation();
    return std::unexpected(slot.error());
  }
  identity_ = slot->identity;  // of the server that has the slot, should there be several
  if (auto prepared = register_and_prepare(slot->slot.consistent_point); !prepared) {
    if (!destination_->broken() && !context_.work.is_given_up()) undo_creation();
    return std::unexpected(prepared.error());
  }
  base::log_event(base::LogLevel::info, "stream_created",
                  {{"stream", delivery_.stream.id},
                   {"consistent_point", base::to_string(slot->slot.consistent_point)},
                   {"plugin", mines(delivery_.stream) ? "none" : pg::name_of(slot->plugin)}});
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, delivery_.stream.id));
  return instantiation_.copy(slot->slot.snapshot_name, slot->slot.consistent_point);
}

// Fails until the capture has made the slot and publications: a transaction that commits before that is in no copy and
// in no stream.
base::Result<void> Starter::await_capture() {
  if (!context_.joins_capture) return {};
  THALWEG_ASSIGN(const pg::Rows found,
                 source_->query("SELECT 1 FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND CASE slot_type "
                                "WHEN 'physical' THEN restart_lsn ELSE confirmed_flush_lsn END IS NOT NULL",
                                {slot_name(delivery_.stream.id)}));
  const pg::PublicationNames names = publications_of(delivery_.stream.id);
  const instantiation::PublishedTables wanted = instantiation_.published_tables();
  THALWEG_ASSIGN(const bool changes, publishes(names.changes, wanted.changes));
  THALWEG_ASSIGN(const bool inserts, publishes(names.inserts, wanted.inserts));
  if (found.size() > 0 && changes && inserts) return {};
  if (!delivery_.stream.receive_from) {
    return base::fail(base::ErrorCode::table_unpublished,
                      "A table is to be copied that the source does not publish yet; the next session of the capture "
                      "publishes it");
  }
  return base::fail(base::ErrorCode::link_refused,
                    fmt::format("Engine \"{}\" has not made the stream's slot at the source yet, or does not publish "
                                "all of its tables",
                                delivery_.stream.receive_from->engine));
}

base::Result<bool> Starter::publishes(const std::string& publication,
                                      const std::vector<instantiation::TableName>& tables) {
  if (tables.empty()) return true;
  THALWEG_ASSIGN(const auto published, capture::published_tables(*source_, publication));
  return std::ranges::all_of(tables, [&](const instantiation::TableName& table) {
    return std::ranges::find(published, capture::PublishedTable{table.schema, table.name}) != published.end();
  });
}

// Joins a capture: what commits from the snapshot's position on comes through its queue.
base::Result<bool> Starter::attach() {
  THALWEG_TRY(await_capture());
  THALWEG_TRY(publish(false));
  std::optional<pg::ReplicationStream> session;
  THALWEG_ASSIGN(const pg::CreatedSlot slot, make_copy_slot(session));
  if (auto prepared = register_and_prepare(slot.consistent_point); !prepared) {
    if (!destination_->broken() && !context_.work.is_given_up()) undo_creation();
    return std::unexpected(prepared.error());
  }
  base::log_event(base::LogLevel::info, "destination_attached",
                  {{"stream", delivery_.stream.id},
                   {"destination", context_.destination},
                   {"consistent_point", base::to_string(slot.consistent_point)}});
  THALWEG_ASSIGN(record_, apply::find_stream(*destination_, delivery_.stream.id));
  return instantiation_.copy(slot.snapshot_name, slot.consistent_point);
}

base::Result<bool> Starter::resume() {
  THALWEG_TRY(instantiation_.prepare());
  std::optional<pg::ReplicationStream> session;
  THALWEG_ASSIGN(const pg::CreatedSlot slot, make_copy_slot(session));
  base::log_event(base::LogLevel::info, "copy_resumed",
                  {{"stream", delivery_.stream.id}, {"consistent_point", base::to_string(slot.consistent_point)}});
  return instantiation_.copy(slot.snapshot_name, slot.consistent_point);
}

// Discards parked transactions that a table's copy has made obsolete. Runs at each start: the engine may have died
// between the copy and this.
base::Result<void> Starter::discard_superseded() {
  THALWEG_ASSIGN(const auto gone, apply::discard_superseded(*destination_, delivery_.stream.id));
  for (const apply::Superseded& superseded : gone) {
    base::log_event(base::LogLevel::warning, "parked_transactions_discarded",
                    {{"stream", delivery_.stream.id},
                     {"table", superseded.table},
                     {"transactions", superseded.transactions},
                     {"why", "copied again at " + base::to_string(superseded.copied_at)}});
  }
  return instantiation_.show_copied();
}

// For a copy; `session` holds its snapshot. Positions of a copy are compared with those of the stream: both from one
// server.
base::Result<pg::CreatedSlot> Starter::make_copy_slot(std::optional<pg::ReplicationStream>& session) {
  THALWEG_ASSIGN(session, pg::ReplicationStream::open(delivery_.stream.source.conninfo,
                                                      capture_session(delivery_.stream, context_.work)));
  THALWEG_ASSIGN(const pg::SystemIdentity found, session->identify());
  THALWEG_TRY(same_source(identity_of(identity_), identity_of(found)));
  return capture::create_copy_slot(*session, found, delivery_.stream.source.conninfo,
                                   copy_slot_name(delivery_.stream.id, context_.destination),
                                   primary_of(delivery_.stream, context_.work));
}

base::Result<void> Starter::check_record() {
  // The slot may be further than this destination: its backlog has the rest, or the engine that captures finds the gap.
  const bool alone = !context_.joins_capture;
  came_from_ = record_->source_timeline;
  std::optional<base::Lsn> end;
  const bool is_it = record_->source_system_identifier == identity_.system_identifier &&
                     (!identity_.standby || delivery_.stream.source.reads_standby);
  if (is_it && came_from_ != identity_.timeline) {
    THALWEG_ASSIGN(end, capture::end_of_timeline(*replication_, identity_, came_from_));
  }
  // Its slot is nothing that a promoted server would have: first is clear whether anything goes on there.
  const bool mines_here = is_it && alone && mines(delivery_.stream);
  if (mines_here) THALWEG_TRY(check_mined(end));
  auto checked = capture::check_slot(*replication_, identity_,
                                     {.slot = slot_name(delivery_.stream.id),
                                      .application_name = capture::capture_application_name(delivery_.stream.id),
                                      .low_watermark = alone ? record_->low_watermark : base::Lsn{},
                                      .system_identifier = record_->source_system_identifier,
                                      .shared = !alone,
                                      .next_slot = next_slot_name(delivery_.stream.id),
                                      .at_standby = delivery_.stream.source.reads_standby,
                                      .is_physical = mines(delivery_.stream)});
  if (!checked && end && checked.error().code == base::ErrorCode::slot_lost) {
    checked.error().message += fmt::format(
        " It is on timeline {} and the stream on {}: what was promoted had no copy of the slot that was ready.",
        identity_.timeline, came_from_);
  }
  if (!checked) return std::unexpected(checked.error());
  return mines_here ? base::Result<void>{} : follow(end);
}

// Of a stream whose WAL this engine has mined. A refusal comes before anything is recorded: the return of the other
// server stays a cure.
base::Result<void> Starter::check_mined(std::optional<base::Lsn> end) {
  THALWEG_ASSIGN(const shipment::WalIdentity source, shipment::identify(*replication_));
  capture::WalFolder folder(context_.folder);
  if (end) note_left_behind(delivery_.stream, source, *source_, context_.folder);
  THALWEG_TRY(capture::check_mining(folder, source, record_->low_watermark));
  THALWEG_TRY(follow(end));
  return renew_slot(delivery_.stream, source, context_.work, context_.folder);
}

base::Result<void> Starter::follow(std::optional<base::Lsn> end) {
  if (context_.check_backlog) THALWEG_TRY(context_.check_backlog(record_->low_watermark, came_from_));
  return end ? follow_timeline(*end) : base::Result<void>{};
}

// After a failover: what the destination has is part of the new server's history, or nothing goes on.
base::Result<void> Starter::follow_timeline(base::Lsn end) {
  THALWEG_ASSIGN(const base::Lsn copied_to, Instantiation::youngest_snapshot(*destination_, delivery_.stream.id));
  apply::TimelineSwitch turn{.from = came_from_, .to = identity_.timeline, .end = end, .copied_to = copied_to};
  if (mines(delivery_.stream)) {
    THALWEG_ASSIGN(auto left, capture::find_left_behind(capture::WalFolder(context_.folder), came_from_, end));
    if (left) {
      turn.check_beyond = [behind = std::move(*left)](base::Lsn reached) {
        return capture::check_left_behind(behind, reached);
      };
    }
  }
  THALWEG_TRY(apply::follow_timeline(*destination_, delivery_.stream.id, turn));
  record_->source_timeline = identity_.timeline;
  record_->low_watermark = std::min(record_->low_watermark, end);
  base::log_event(base::LogLevel::warning, "timeline_followed",
                  {{"stream", delivery_.stream.id},
                   {"destination", context_.destination},
                   {"from", came_from_},
                   {"to", identity_.timeline},
                   {"switched_at", base::to_string(end)},
                   {"low_watermark", base::to_string(record_->low_watermark)}});
  return {};
}

base::Result<std::optional<StartedDestination>> Starter::run() {
  THALWEG_TRY(
      on_side("Source", delivery_.stream.source.name, context_.work.end_given_up(delivery_.stream.source.conninfo)));
  THALWEG_TRY(
      on_side("Destination", delivery_.destination.name, context_.work.end_given_up(delivery_.destination.conninfo)));
  THALWEG_TRY(look());
  if (context_.session != CaptureIdentity{}) THALWEG_TRY(same_source(context_.session, identity_of(identity_)));
  if (record_) THALWEG_TRY(check_record());
  replication_.reset();  // a copy may take hours
  THALWEG_ASSIGN(instantiation::Assessment assessment, instantiation_.assess(!record_));
  if (!record_ || assessment.needs_snapshot) context_.on_copy();
  bool complete = true;
  if (!record_) {
    THALWEG_ASSIGN(complete, context_.joins_capture ? attach() : create());
  } else {
    // A table that is copied before its changes are published loses what happens to it in between.
    if (assessment.needs_snapshot) THALWEG_TRY(await_capture());
    THALWEG_TRY(publish(false));
    if (assessment.needs_snapshot) {
      THALWEG_ASSIGN(complete, resume());
    }
  }
  if (!complete) return std::nullopt;
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
                                .stopped = table.stopped,
                                .recorded = true,
                                .stream_schema = table.stream_table.schema,
                                .stream_table = table.stream_table.name});
  }
  return started;
}

base::Result<void> Starter::late_constraints(base::Lsn applied) {
  THALWEG_TRY(instantiation_.assess(false));
  THALWEG_TRY(instantiation_.add_constraints(applied));
  return {};
}

// A start that nobody wants any more must not leave a slot, which holds WAL, for a stream that is not registered.
base::Result<void> undo_given_up(const Delivery& delivery) {
  pg::ConnectOptions options;
  options.application_name = "thalweg supervisor " + delivery.stream.id;
  options.connect_timeout = kUndoPatience;
  options.lifetime = kUndoPatience;
  THALWEG_ASSIGN(pg::Connection destination, pg::Connection::open(delivery.destination.conninfo, options));
  THALWEG_ASSIGN(const auto record, apply::find_stream(destination, delivery.stream.id));
  if (record) return {};  // the next start goes on with it
  THALWEG_ASSIGN(pg::Connection source, pg::Connection::open(delivery.stream.source.conninfo, options));
  THALWEG_TRY(capture::drop_slot(source, slot_name(delivery.stream.id),
                                 capture::capture_application_name(delivery.stream.id), std::chrono::seconds(2)));
  return unpublish(source, delivery.stream);
}

void end_given_up_start(const Delivery& delivery, const DatabaseWork& work, bool is_new) {
  auto ended = work.end_given_up(delivery.stream.source.conninfo);
  if (ended) ended = work.end_given_up(delivery.destination.conninfo);
  if (ended && is_new) ended = undo_given_up(delivery);
  log_undone(delivery.stream, ended);
}

}  // namespace

base::Result<StartedDestination> start_destination(const Delivery& delivery, const StartContext& context) {
  bool is_new = false;
  std::optional<Starter> starter;
  base::Result<std::optional<StartedDestination>> started;
  do {
    starter.emplace(delivery, context);
    started = starter->run();
    is_new = is_new || starter->is_new();
  } while (started && !*started);
  if (started) return std::move(**started);
  if (context.work.is_given_up()) {
    starter.reset();  // its sessions with it
    end_given_up_start(delivery, context.work, is_new);
  }
  return std::unexpected(std::move(started.error()));
}

base::Result<void> add_late_constraints(const Delivery& delivery, const StartContext& context, base::Lsn applied) {
  std::optional<Starter> starter(std::in_place, delivery, context);
  auto added = starter->late_constraints(applied);
  if (added || !context.work.is_given_up()) return added;
  starter.reset();
  end_given_up_start(delivery, context.work, false);
  return added;
}

}  // namespace thalweg::daemon
