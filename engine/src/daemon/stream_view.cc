#include <algorithm>

#include "apply/error_queue.h"
#include "daemon/stream.h"

// What the control API sees of a Stream, and what it does to its error queue.

namespace thalweg::daemon {
namespace {

control::InstantiationStatus to_status(const instantiation::ProgressReport& report) {
  control::InstantiationStatus out;
  out.started_at = *report.started_at;
  out.finished_at = report.finished_at;
  out.warnings = report.warnings;
  for (const instantiation::TableProgress& table : report.tables) {
    out.tables.push_back({.table = {table.table.schema, table.table.name},
                          .state = instantiation::name_of(table.state),
                          .rows_estimated = table.rows_estimated,
                          .rows_copied = table.rows_copied,
                          .bytes_copied = table.bytes_copied,
                          .ranges_total = table.ranges_total,
                          .ranges_copied = table.ranges_copied,
                          .seconds = table.seconds});
  }
  return out;
}

std::string_view mode_of(const control::StreamDefinition& definition) {
  if (definition.send_to) return "CAPTURE AND PROPAGATION";
  return definition.receive_from ? "PROPAGATION AND APPLY" : "COMBINED CAPTURE AND APPLY";
}

control::ParkedTransactionView to_view(apply::ParkedTransaction parked) {
  return {.id = parked.id,
          .commit_lsn = parked.commit_lsn,
          .xid = parked.xid,
          .lcrs = parked.lcrs,
          .tables = std::move(parked.tables),
          .code = std::move(parked.code),
          .message = std::move(parked.message),
          .sqlstate = std::move(parked.sqlstate),
          .parked_at = std::move(parked.parked_at)};
}

}  // namespace

control::StreamStatus Stream::status() const {
  control::StreamStatus out;
  out.id = id_;
  std::vector<control::TableRef> tables;
  bool copies = false;
  {
    std::lock_guard lock(mutex_);
    out.status = status_;
    out.phase = phase_;
    out.error = error_;
    out.retry_at = retry_at_;
    tables = desired_.tables;
    out.mode = mode_of(desired_);
    copies = desired_.parameters.initial_copy;
  }
  std::vector<telemetry::TableSample> changes;
  bool running = false;
  {
    std::shared_lock lock(pipeline_lock_);
    if (pipeline_) {
      running = true;
      const PipelinePositions positions = pipeline_->positions();
      out.captured = positions.captured;
      out.source_end = positions.source_end;
      out.applied = positions.applied;
      out.confirmed = positions.confirmed;
      changes = pipeline_->tables();
    }
  }
  instantiation::ProgressReport report = progress_.report();
  if (copies && report.started_at) out.instantiation = to_status(report);
  for (const control::TableRef& table : tables) {
    control::TableStatus one;
    auto changed = std::ranges::find_if(changes, [&](const auto& sample) {
      return sample.schema_name == table.schema && sample.table_name == table.table;
    });
    if (changed != changes.end()) one.changes = *changed;
    one.changes.schema_name = table.schema;
    one.changes.table_name = table.table;
    auto copied = std::ranges::find(report.tables, instantiation::TableName{table.schema, table.table},
                                    &instantiation::TableProgress::table);
    instantiation::CopyState state = copied == report.tables.end() ? instantiation::CopyState::waiting : copied->state;
    one.state = running ? "REPLICATING" : instantiation::name_of(state);
    out.tables.push_back(std::move(one));
  }
  return out;
}

control::StreamStats Stream::stats() const {
  std::shared_lock lock(pipeline_lock_);
  if (pipeline_) return pipeline_->stats();
  control::StreamStats none;
  none.id = id_;
  return none;
}

base::Result<pg::Connection> Stream::connect_destination() const {
  pg::ConnectOptions options;
  options.application_name = "thalweg error queue " + id_;
  std::string conninfo;
  {
    std::lock_guard lock(mutex_);
    if (desired_.send_to) {
      return base::fail(base::ErrorCode::unknown_error_transaction,
                        "The stream's error queue is with the engine that applies: " + desired_.send_to->engine);
    }
    conninfo = desired_.destination.conninfo;
  }
  return pg::Connection::open(conninfo, options);
}

base::Result<std::vector<control::ParkedTransactionView>> Stream::errors(const std::string& destination) const {
  THALWEG_TRY(check_destination(destination));
  THALWEG_ASSIGN(pg::Connection connection, connect_destination());
  THALWEG_ASSIGN(std::vector<apply::ParkedTransaction> parked, apply::list_parked(connection, id_));
  std::vector<control::ParkedTransactionView> out;
  for (apply::ParkedTransaction& one : parked) out.push_back(to_view(std::move(one)));
  return out;
}

base::Result<void> Stream::execute_error(const std::string& destination, int64_t error_id) {
  THALWEG_TRY(check_destination(destination));
  {
    std::shared_lock lock(pipeline_lock_);
    if (pipeline_ && pipeline_->apply() != nullptr) return pipeline_->apply()->execute_error(error_id);
  }
  THALWEG_ASSIGN(pg::Connection connection, connect_destination());
  return apply::execute_parked(std::move(connection), id_, error_id);
}

base::Result<void> Stream::drop_error(const std::string& destination, int64_t error_id) {
  THALWEG_TRY(check_destination(destination));
  {
    std::shared_lock lock(pipeline_lock_);
    if (pipeline_ && pipeline_->apply() != nullptr) return pipeline_->apply()->remove_error(error_id);
  }
  THALWEG_ASSIGN(pg::Connection connection, connect_destination());
  return apply::remove_parked(connection, id_, error_id);
}

}  // namespace thalweg::daemon
