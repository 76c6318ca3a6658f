#include <fmt/format.h>

#include <algorithm>

#include "daemon/destination_errors.h"
#include "daemon/stream.h"
#include "daemon/stream_status.h"
#include "daemon/table_actions.h"

// What the control API sees of a Stream, and what it does to its error queue.

namespace thalweg::daemon {
control::StreamStatus Stream::status() const {
  control::StreamStatus out;
  out.id = id_;
  control::StreamDefinition definition;
  {
    std::lock_guard lock(mutex_);
    out.status = status_;
    out.phase = phase_;
    out.error = error_;
    out.retry_at = retry_at_;
    definition = desired_;
  }
  out.mode = mode_of(definition);
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
      out.counted_since = pipeline_->counted_since();
    }
  }
  if (definition.fans_out()) {
    add_destinations(out, definition);
    running = false;
    for (const control::DestinationStatus& one : out.destinations) {
      for (const control::TableStatus& table : one.tables) {
        running = running || table.state == "REPLICATING";
        telemetry::add_table(changes, table.changes);
      }
    }
  }
  out.waits = waits_.waits(definition);
  add_tables(out, definition.tables, changes, progress_.report(), running, definition.parameters.initial_copy);
  if (!definition.fans_out()) watch_of("").add_to(out.tables);
  for (const control::DestinationStatus& one : out.destinations) add_troubles(out.tables, one.tables);
  return out;
}

// Those of the fan-out that runs; else what is known without one.
void Stream::add_destinations(control::StreamStatus& out, const control::StreamDefinition& definition) const {
  {
    std::shared_lock lock(pipeline_lock_);
    if (fan_out_) {
      const PipelinePositions positions = fan_out_->positions();
      out.captured = positions.captured;
      out.source_end = positions.source_end;
      out.confirmed = positions.confirmed;
      out.destinations = fan_out_->destinations();
    }
  }
  // Those that were desired a moment ago, or that wait for the stream to start.
  for (const control::DestinationDefinition& one : definition.destinations) {
    if (std::ranges::find(out.destinations, one.id, &control::DestinationStatus::id) != out.destinations.end())
      continue;
    control::DestinationStatus& idle = out.destinations.emplace_back();
    idle.id = one.id;
    idle.status = out.status;
    idle.phase = "STOPPED";
    idle.mode = mode_of(control::branch_of(definition, one));
    idle.backlog.limit_bytes = static_cast<uint64_t>(one.parameters.queue_spill_limit_mb) << 20;
    idle.tables = table_statuses(definition.tables, {}, {}, false);
    watch_of(one.id).add_to(idle.tables);
  }
  bool first = true;
  for (const control::DestinationStatus& one : out.destinations) {
    if (one.status == "DROPPED" || one.phase == "DROPPING") continue;
    out.applied = first ? one.applied : std::min(out.applied, one.applied);
    first = false;
  }
}

control::StreamStats Stream::stats() const {
  std::shared_lock lock(pipeline_lock_);
  if (pipeline_) return pipeline_->stats();
  if (fan_out_) return fan_out_->stats();
  control::StreamStats none;
  none.id = id_;
  return none;
}

telemetry::TransactionSamples Stream::transactions() const {
  std::shared_lock lock(pipeline_lock_);
  if (fan_out_) return fan_out_->transactions();
  if (pipeline_ && pipeline_->apply() != nullptr) return pipeline_->apply()->transactions();
  return {};
}

telemetry::MarkerTrail Stream::markers() const {
  std::shared_lock lock(pipeline_lock_);
  if (fan_out_) return fan_out_->markers();
  return pipeline_ ? pipeline_->markers() : telemetry::MarkerTrail{};
}

base::Result<void> Stream::place_marker(const std::string& id, const std::string& label) {
  std::shared_lock lock(pipeline_lock_);
  if (fan_out_) return fan_out_->place_marker(id, label);
  if (pipeline_) return pipeline_->place_marker(id, label);
  return base::fail(base::ErrorCode::marker_refused, "The stream does not run");
}

base::Result<void> Stream::check_destination(const std::string& destination) const {
  const control::StreamDefinition definition = desired();
  if (destination.empty() && !definition.fans_out()) return {};
  if (destination.empty()) {
    return base::fail(base::ErrorCode::destination_required,
                      fmt::format("Stream {} has {} destinations", id_, definition.destinations.size()));
  }
  if (std::ranges::find(definition.destinations, destination, &control::DestinationDefinition::id) !=
      definition.destinations.end()) {
    return {};
  }
  return base::fail(base::ErrorCode::unknown_destination,
                    fmt::format("Stream {} has no destination \"{}\"", id_, destination));
}

// The stream as `destination` sees it; as it is where that is empty.
control::StreamDefinition Stream::desired_of(const std::string& destination) const {
  const control::StreamDefinition definition = desired();
  const auto found = std::ranges::find(definition.destinations, destination, &control::DestinationDefinition::id);
  return found == definition.destinations.end() ? definition : control::branch_of(definition, *found);
}

base::Result<control::ParkedListView> Stream::errors(const std::string& destination,
                                                     const telemetry::ParkedPart& part) const {
  THALWEG_TRY(check_destination(destination));
  THALWEG_ASSIGN(control::ParkedListView list, parked_errors(desired_of(destination), part, abandon_));
  list.execution = executions_.status(destination);
  return list;
}

base::Result<control::ParkedContentsView> Stream::error_contents(const std::string& destination,
                                                                 int64_t error_id) const {
  THALWEG_TRY(check_destination(destination));
  return parked_error_contents(desired_of(destination), error_id, abandon_);
}

// Its statements may wait for somebody's lock at the destination for as long as that lasts: nothing of the stream is
// held meanwhile.
base::Result<std::string_view> Stream::execute_error(const std::string& destination, std::optional<int64_t> error_id) {
  THALWEG_TRY(check_destination(destination));
  return executions_.execute(destination, desired_of(destination), error_id,
                             [this, destination] { note_errors_changed(destination); });
}

base::Result<void> Stream::drop_error(const std::string& destination, int64_t error_id) {
  THALWEG_TRY(check_destination(destination));
  auto removed = remove_parked_error(desired_of(destination), error_id, abandon_);
  note_errors_changed(destination);
  return removed;
}

// Recorded at the destination first: a crash from here on loses nothing of it.
base::Result<void> Stream::copy_table(const std::string& destination, const control::TableRef& table) {
  THALWEG_TRY(check_destination(destination));
  THALWEG_TRY(ask_for_copy(desired_of(destination), table, abandon_));
  watch_of(destination).refresh();
  start_over(destination);
  return {};
}

base::Result<void> Stream::accept_table(const std::string& destination, const control::TableRef& table) {
  THALWEG_TRY(check_destination(destination));
  THALWEG_TRY(accept_partitions(desired_of(destination), table, abandon_));
  watch_of(destination).refresh();
  return retry(destination);
}

void Stream::start_over(const std::string& destination) {
  if (!destination.empty()) {
    std::shared_lock lock(pipeline_lock_);
    if (Branch* const branch = fan_out_ ? fan_out_->find(destination) : nullptr) branch->start_over();
    return;
  }
  std::lock_guard lock(mutex_);
  if (desired_.status != control::DesiredStatus::enabled) return;
  clear_memory();
  interrupt_ = true;
  has_news_ = true;
  retry_asked_ = true;
  changed_.notify_all();
}

void Stream::note_errors_changed(const std::string& destination) {
  ++error_changes_;  // first: a pipeline that starts right now looks at it once it can be found here
  std::shared_lock lock(pipeline_lock_);
  if (pipeline_ && pipeline_->apply() != nullptr) pipeline_->apply()->note_errors_changed();
  if (Branch* const branch = fan_out_ ? fan_out_->find(destination) : nullptr) branch->note_errors_changed();
}

}  // namespace thalweg::daemon
