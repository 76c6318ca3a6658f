#include "capture/logical/standby_snapshots.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "pg/replication_stream.h"

namespace thalweg::capture {

namespace {

using base::ErrorCode;

constexpr std::chrono::milliseconds kInterval{500};
constexpr std::chrono::milliseconds kStopLook{100};
constexpr const char* kLog = "SELECT pg_log_standby_snapshot()";
// A statement for users without that right: the server logs a snapshot at most 15 seconds after something is written.
constexpr const char* kWriteSomething = "SELECT pg_logical_emit_message(true, 'thalweg', '')";

}  // namespace

namespace {

base::Result<std::string> cluster_of(const PrimaryOfStandby& primary, pg::Connection& connection) {
  auto rows = connection.query("SELECT system_identifier FROM pg_control_system()");
  if (rows) return std::string{rows->text(0, 0)};
  if (rows.error().code != ErrorCode::insufficient_privilege) return std::unexpected(std::move(rows).error());
  // Some services keep that function from users; a replication connection tells it to whoever may open one.
  THALWEG_ASSIGN(pg::ReplicationStream session,
                 pg::ReplicationStream::open(primary.conninfo, primary.application_name));
  THALWEG_ASSIGN(pg::SystemIdentity identity, session.identify());
  return std::move(identity.system_identifier);
}

}  // namespace

base::Result<pg::Connection> open_primary(const PrimaryOfStandby& primary, const std::string& system_identifier) {
  auto opened = pg::Connection::open(
      primary.conninfo,
      {.application_name = primary.application_name, .abandon = primary.stop, .board = primary.board});
  if (!opened) {
    opened.error().message = "The primary of the source's standby: " + opened.error().message;
    return opened;
  }
  THALWEG_ASSIGN(const std::string cluster, cluster_of(primary, *opened));
  if (cluster == system_identifier) return opened;
  return base::fail(ErrorCode::source_changed,
                    fmt::format("The source's primary has the system identifier {}, its standby {}: they are not "
                                "servers of one cluster.",
                                cluster, system_identifier));
}

StandbySnapshots::StandbySnapshots(PrimaryOfStandby primary, std::string system_identifier,
                                   pg::Connection::Canceller slot_maker)
    : primary_(std::move(primary)),
      system_identifier_(std::move(system_identifier)),
      slot_maker_(std::move(slot_maker)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

StandbySnapshots::~StandbySnapshots() = default;

std::optional<base::Error> StandbySnapshots::end() {
  thread_.request_stop();
  thread_.join();
  return error_;
}

void StandbySnapshots::run(const std::stop_token& stop) {
  auto logged = log_snapshots(stop);
  // One cancel may come before the statement that it is for.
  for (; !logged && !stop.stop_requested(); std::this_thread::sleep_for(kStopLook)) {
    error_ = logged.error();
    slot_maker_.cancel();
  }
}

base::Result<void> StandbySnapshots::log_snapshots(const std::stop_token& stop) {
  THALWEG_ASSIGN(pg::Connection primary, open_primary(primary_, system_identifier_));
  const char* sql = kLog;
  std::mutex mutex;
  std::condition_variable_any timer;
  for (int round = 0; !stop.stop_requested(); ++round) {
    if (primary_.stop != nullptr && *primary_.stop) {
      return base::fail(ErrorCode::engine_stopping, "The making of the slot was interrupted");
    }
    if (round % (kInterval / kStopLook) == 0) {
      auto logged = primary.query(sql);
      if (!logged && logged.error().code == ErrorCode::insufficient_privilege && sql == kLog) {
        base::log_event(base::LogLevel::warning, "standby_snapshot_not_allowed",
                        {{"reason",
                          "a slot at a standby begins sooner with GRANT EXECUTE ON FUNCTION "
                          "pg_log_standby_snapshot() TO the user, at the primary"}});
        sql = kWriteSomething;
        continue;
      }
      if (!logged) return std::unexpected(std::move(logged).error());
    }
    std::unique_lock lock(mutex);
    timer.wait_for(lock, stop, kStopLook, [] { return false; });
  }
  return {};
}

}  // namespace thalweg::capture
