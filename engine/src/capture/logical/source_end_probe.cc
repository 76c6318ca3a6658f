#include "capture/logical/source_end_probe.h"

#include <utility>

#include <spdlog/spdlog.h>

namespace thalweg::capture {

namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr const char* kCannotConnectNow = "57P03";
constexpr const char* kQuery =
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END";

// A standby cannot commit anything.
constexpr const char* kEmit =
    "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_logical_emit_message(true, $1::text, $2::text) END";

}  // namespace

SourceEndProbe::SourceEndProbe(base::Conninfo conninfo, std::string application_name, Heartbeats heartbeats)
    : conninfo_(std::move(conninfo)),
      application_name_(std::move(application_name)),
      heartbeats_(std::move(heartbeats)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

// jthread asks its thread to stop, which ends the wait, and joins it.
SourceEndProbe::~SourceEndProbe() { abandon_ = true; }

base::Result<void> SourceEndProbe::connect() {
  if (connection_ && !connection_->broken()) return {};
  connection_.reset();
  THALWEG_ASSIGN(connection_, pg::Connection::open(conninfo_, {.application_name = application_name_}));
  return {};
}

base::Result<pg::Connection*> SourceEndProbe::connection_for_markers() {
  if (heartbeats_.primary.conninfo.empty()) {
    THALWEG_TRY(connect());
    return &*connection_;
  }
  if (!primary_ || primary_->broken()) {
    primary_.reset();
    PrimaryOfStandby primary = heartbeats_.primary;
    primary.stop = &abandon_;
    THALWEG_ASSIGN(primary_, open_primary(primary, heartbeats_.system_identifier));
  }
  return &*primary_;
}

base::Result<void> SourceEndProbe::ask() {
  THALWEG_TRY(connect());
  THALWEG_ASSIGN(const pg::Rows rows, connection_->query(kQuery));
  position_.store(base::parse_lsn(rows.text(0, 0)).value_or(base::Lsn{}).value, std::memory_order_relaxed);
  return {};
}

base::Result<void> SourceEndProbe::place_markers() {
  while (const auto content = heartbeats_.board->next()) {
    auto answer = [&]() -> base::Result<pg::Rows> {
      THALWEG_ASSIGN(pg::Connection * connection, connection_for_markers());
      return connection->query(kEmit, {heartbeats_.prefix, *content});
    }();
    if (!answer) {
      heartbeats_.board->failed(*content, base::message_without_rows(answer.error()));
      return std::unexpected(answer.error());
    }
    if (answer->is_null(0, 0)) {
      heartbeats_.board->failed(*content, "The source is a standby: nothing can be committed there");
    } else {
      heartbeats_.board->placed(*content);
    }
  }
  return {};
}

void SourceEndProbe::run(const std::stop_token& stop) {
  // The first one comes an interval after the start.
  beat_at_ = heartbeats_.clock->steady_now();
  while (!stop.stop_requested()) {
    const auto now = heartbeats_.clock->steady_now();
    if (heartbeats_.interval.count() > 0 && now - beat_at_ >= heartbeats_.interval) {
      beat_at_ = now;
      heartbeats_.board->place_heartbeat();
    }
    const auto placed = place_markers();
    if (!placed) spdlog::debug("no marker can be committed: {}", placed.error().message);
    const auto done = ask();
    is_shutting_down_.store(!done && done.error().sqlstate == kCannotConnectNow, std::memory_order_relaxed);
    if (!done) spdlog::debug("the source's WAL position is unknown: {}", done.error().message);
    heartbeats_.board->await(stop, kInterval);
  }
}

}  // namespace thalweg::capture
