#include "capture/logical/slot.h"

#include <functional>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;

constexpr std::chrono::milliseconds kRetryInterval{100};

struct SlotRow {
  std::string plugin;
  std::string database;
  std::string wal_status;
  base::Lsn restart_lsn;
  base::Lsn confirmed_flush;
  int64_t active_pid = 0;  // 0: nobody reads it
  std::string holder;      // application_name of active_pid, where we may see it
  std::string invalidation_reason;
  bool is_physical = false;
};

// The slot, by a script: a replication connection knows no parameters.
base::Result<std::optional<SlotRow>> find_slot(pg::Connection& connection, const std::string& slot) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.script("SELECT s.plugin, s.database, s.wal_status, s.restart_lsn, s.confirmed_flush_lsn, "
                                   "s.active_pid, a.application_name, coalesce(to_jsonb(s) ->> 'invalidation_reason', "
                                   "CASE WHEN (to_jsonb(s) ->> 'conflicting')::boolean THEN 'conflict' END), "
                                   "s.slot_type = 'physical' "
                                   "FROM pg_replication_slots s "
                                   "LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = " +
                                   connection.quote_literal(slot)));
  if (rows.size() == 0) return std::optional<SlotRow>{};
  return SlotRow{.plugin = std::string{rows.text(0, 0)},
                 .database = std::string{rows.text(0, 1)},
                 .wal_status = std::string{rows.text(0, 2)},
                 .restart_lsn = base::parse_lsn(rows.text(0, 3)).value_or(base::Lsn{}),
                 .confirmed_flush = base::parse_lsn(rows.text(0, 4)).value_or(base::Lsn{}),
                 .active_pid = rows.integer(0, 5),
                 .holder = std::string{rows.text(0, 6)},
                 .invalidation_reason = std::string{rows.text(0, 7)},
                 .is_physical = rows.boolean(0, 8)};
}

base::Error in_use(const std::string& slot, const SlotRow& row) {
  return base::fail(ErrorCode::slot_in_use, fmt::format("The slot {} is read by the server process {} ({}).", slot,
                                                        row.active_pid, row.holder.empty() ? "unknown" : row.holder))
      .error();
}

// The slot's row once nobody reads it. Our own session may take a while to be missed by the server; another's is
// another's business.
base::Result<std::optional<SlotRow>> await_free(pg::Connection& connection, const std::string& slot,
                                                const std::string& application_name,
                                                std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    THALWEG_ASSIGN(auto row, find_slot(connection, slot));
    if (!row || row->active_pid == 0) return row;
    // A session that has just ended shows neither name nor row for a moment: that is waited for like our own.
    const bool may_be_ours = row->holder.empty() || row->holder == application_name;
    if (!may_be_ours || std::chrono::steady_clock::now() >= deadline) return std::unexpected(in_use(slot, *row));
    std::this_thread::sleep_for(kRetryInterval);
  }
}

base::Result<void> check_kind(const SlotRow& row, pg::OutputPlugin plugin, const pg::SystemIdentity& identity,
                              const SlotExpectation& expected) {
  if (!expected.shared && row.is_physical != expected.is_physical) {
    return base::fail(ErrorCode::slot_lost,
                      fmt::format("The slot {} is a {} one: the stream was made with another capture_kind.",
                                  expected.slot, row.is_physical ? "physical" : "logical"));
  }
  if (row.is_physical) return {};
  if (row.plugin != pg::name_of(plugin)) {
    return base::fail(ErrorCode::slot_lost,
                      fmt::format("The slot {} is not ours: its plugin is {}.", expected.slot, row.plugin));
  }
  if (row.database != identity.database) {
    return base::fail(ErrorCode::source_changed, fmt::format("The slot {} belongs to database {}, not to {}.",
                                                             expected.slot, row.database, identity.database));
  }
  return {};
}

}  // namespace

std::string lost_in_words(const std::string& slot, std::string_view reason) {
  if (reason == "idle_timeout") {
    return fmt::format(
        "The source has given up the slot {}: nobody read from it for longer than its idle_replication_slot_timeout, "
        "which should be 0, or longer than a stream may stand still.",
        slot);
  }
  if (reason == "wal_level_insufficient") {
    return fmt::format("The source has given up the slot {}: its wal_level was below logical for a while.", slot);
  }
  if (reason == "rows_removed") {
    return fmt::format(
        "The source has removed rows of its catalogues that the slot {} needed. A standby whose slots are read needs "
        "hot_standby_feedback = on, and a slot of its own at its primary (primary_slot_name) for while it is away.",
        slot);
  }
  if (reason == "conflict") {  // PostgreSQL 16 says no more
    return fmt::format(
        "The standby has given up the slot {}: its primary has removed rows of its catalogues that the slot needed, "
        "which hot_standby_feedback = on and primary_slot_name at the standby prevent, or the primary's wal_level was "
        "below logical for a while.",
        slot);
  }
  return fmt::format("The source has removed WAL that the slot {} needed: max_slot_wal_keep_size was reached.", slot);
}

std::string capture_application_name(std::string_view stream_id) { return fmt::format("thalweg_{}", stream_id); }

namespace {

// Makes a slot that may be at a standby, and makes sure that its position is one of the identity's timeline.
base::Result<pg::CreatedSlot> create_where_it_is(pg::ReplicationStream& session, const pg::SystemIdentity& identity,
                                                 const base::Conninfo& conninfo, const PrimaryOfStandby& primary,
                                                 const std::function<base::Result<pg::CreatedSlot>()>& create) {
  if (!identity.standby) return create();
  auto created = [&] {
    StandbySnapshots snapshots(primary, identity.system_identifier, session.canceller());
    auto result = create();
    if (const auto why = snapshots.end(); !result && why) return base::Result<pg::CreatedSlot>(std::unexpected(*why));
    return result;
  }();
  if (!created) return created;
  // Over a connection of its own: the next command on this one would end the snapshot.
  THALWEG_ASSIGN(pg::ReplicationStream witness, pg::ReplicationStream::open(conninfo, primary.application_name));
  THALWEG_ASSIGN(const int timeline, witness.timeline());
  if (timeline == identity.timeline) return created;
  return base::fail(ErrorCode::connection_lost,
                    fmt::format("the source has gone from timeline {} to {} meanwhile", identity.timeline, timeline),
                    base::ErrorSide::source);
}

}  // namespace

base::Result<pg::CreatedSlot> create_copy_slot(pg::ReplicationStream& session, const pg::SystemIdentity& identity,
                                               const base::Conninfo& conninfo, const std::string& slot,
                                               const PrimaryOfStandby& primary) {
  return create_where_it_is(session, identity, conninfo, primary, [&] { return session.create_slot(slot, true); });
}

base::Result<NewSlot> create_slot(const base::Conninfo& conninfo, const std::string& slot,
                                  const pg::ConnectOptions& session, SourcePlugin wanted,
                                  const PrimaryOfStandby& primary) {
  THALWEG_ASSIGN(pg::ReplicationStream stream, pg::ReplicationStream::open(conninfo, session));
  THALWEG_ASSIGN(pg::SystemIdentity identity, stream.identify());
  const auto create = [&](pg::OutputPlugin with) {
    return create_where_it_is(stream, identity, conninfo, primary,
                              [&] { return stream.create_slot(slot, false, with); });
  };
  auto plugin = wanted == SourcePlugin::pgoutput ? pg::OutputPlugin::pgoutput : pg::OutputPlugin::thalweg_output;
  auto created = create(plugin);
  if (!created && wanted == SourcePlugin::automatic && created.error().code == ErrorCode::output_plugin_unavailable) {
    base::log_event(base::LogLevel::info, "output_plugin_not_used",
                    {{"slot", slot}, {"reason", created.error().message}});
    plugin = pg::OutputPlugin::pgoutput;
    created = create(plugin);
  }
  if (!created) return std::unexpected(std::move(created).error());
  return NewSlot{
      .stream = std::move(stream), .slot = *std::move(created), .plugin = plugin, .identity = std::move(identity)};
}

base::Result<void> drop_slot(pg::Connection& connection, const std::string& slot, const std::string& application_name,
                             std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    THALWEG_ASSIGN(const auto row, await_free(connection, slot, application_name, patience));
    if (!row) return {};
    const auto dropped = connection.query("SELECT pg_drop_replication_slot($1)", {slot});
    if (dropped || dropped.error().sqlstate == "42704") return {};
    // Somebody took it between the two statements.
    if (dropped.error().sqlstate != "55006") return std::unexpected(dropped.error());
    if (std::chrono::steady_clock::now() >= deadline) return std::unexpected(in_use(slot, *row));
    std::this_thread::sleep_for(kRetryInterval);
  }
}

base::Result<SlotState> check_slot(pg::ReplicationStream& source, const pg::SystemIdentity& identity,
                                   const SlotExpectation& expected) {
  if (!expected.system_identifier.empty() && expected.system_identifier != identity.system_identifier) {
    return base::fail(ErrorCode::source_changed,
                      fmt::format("The source's system identifier is {}, the stream was made for {}.",
                                  identity.system_identifier, expected.system_identifier));
  }
  // Its slots are there before it is promoted, where it synchronises them, but nobody may read them.
  if (identity.standby && !expected.at_standby) {
    return base::fail(ErrorCode::source_read_only,
                      fmt::format("The source is a standby now: the slot {} cannot be read.", expected.slot));
  }
  pg::Connection& connection = source.connection();
  THALWEG_ASSIGN(auto row, expected.shared
                               ? find_slot(connection, expected.slot)
                               : await_free(connection, expected.slot, expected.application_name, expected.patience));
  if (!row && expected.shared && !expected.next_slot.empty()) {
    THALWEG_ASSIGN(row, find_slot(connection, expected.next_slot));
  }
  if (!row) return base::fail(ErrorCode::slot_lost, fmt::format("The source has no slot {}.", expected.slot));
  const auto plugin = row->plugin == pg::name_of(pg::OutputPlugin::thalweg_output) ? pg::OutputPlugin::thalweg_output
                                                                                   : pg::OutputPlugin::pgoutput;
  THALWEG_TRY(check_kind(*row, plugin, identity, expected));
  if (row->wal_status == "lost") {
    return base::fail(ErrorCode::slot_lost, lost_in_words(expected.slot, row->invalidation_reason));
  }
  if (expected.low_watermark && row->confirmed_flush > expected.low_watermark) {
    base::Error gap =
        base::fail(
            ErrorCode::position_gap,
            fmt::format("The slot {} is at {}, the destination has applied up to {}: {} bytes of WAL are missing. "
                        "Somebody has moved the slot on, has dropped it and made another one, or has restored the "
                        "destination to an earlier state.",
                        expected.slot, base::to_string(row->confirmed_flush), base::to_string(expected.low_watermark),
                        row->confirmed_flush.value - expected.low_watermark.value))
            .error();
    gap.lsn = expected.low_watermark;
    return std::unexpected(std::move(gap));
  }
  return SlotState{.plugin = plugin, .restart_lsn = row->restart_lsn, .confirmed_flush = row->confirmed_flush};
}

base::Result<base::Lsn> end_of_timeline(pg::ReplicationStream& source, const pg::SystemIdentity& identity,
                                        int timeline) {
  const auto diverged = [&](std::string_view why) {
    return base::fail(ErrorCode::source_diverged, fmt::format("The source is on timeline {}, the stream is on {}: {}",
                                                              identity.timeline, timeline, why));
  };
  const auto history = source.timeline_history(identity.timeline);
  if (!history) {
    if (base::class_of(history.error().code) == base::ErrorClass::transient) return std::unexpected(history.error());
    return diverged("the server cannot tell where its timeline comes from: " + history.error().message);
  }
  const auto end = history->end_of(timeline);
  if (end) return *end;
  return diverged(identity.timeline < timeline
                      ? "this server was left behind when another one was promoted, or restored to an earlier state."
                      : "this server has never been on it.");
}

}  // namespace thalweg::capture
