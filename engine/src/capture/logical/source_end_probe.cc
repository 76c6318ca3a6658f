#include "capture/logical/source_end_probe.h"

#include <optional>

#include <spdlog/spdlog.h>

#include "pg/connection.h"

namespace thalweg::capture {

namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr const char* kQuery =
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END";

base::Result<base::Lsn> ask(std::optional<pg::Connection>& connection, const std::string& conninfo,
                            const std::string& application_name) {
  if (!connection || connection->broken()) {
    connection.reset();
    THALWEG_ASSIGN(connection, pg::Connection::open(conninfo, {.application_name = application_name}));
  }
  THALWEG_ASSIGN(const pg::Rows rows, connection->query(kQuery));
  return base::parse_lsn(rows.text(0, 0)).value_or(base::Lsn{});
}

}  // namespace

SourceEndProbe::SourceEndProbe(std::string conninfo, std::string application_name)
    : conninfo_(std::move(conninfo)),
      application_name_(std::move(application_name)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SourceEndProbe::~SourceEndProbe() = default;  // jthread asks its thread to stop, which ends the wait

void SourceEndProbe::run(const std::stop_token& stop) {
  std::optional<pg::Connection> connection;
  while (!stop.stop_requested()) {
    if (const auto end = ask(connection, conninfo_, application_name_)) {
      position_.store(end->value, std::memory_order_relaxed);
    } else {
      spdlog::debug("the source's WAL position is unknown: {}", end.error().message);
    }
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, kInterval, [] { return false; });
  }
}

}  // namespace thalweg::capture
