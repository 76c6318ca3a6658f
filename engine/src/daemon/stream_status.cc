#include "daemon/stream_status.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace thalweg::daemon {

namespace {

control::TableState state_of(instantiation::CopyState state) {
  switch (state) {
    case instantiation::CopyState::waiting:
      return control::TableState::waiting;
    case instantiation::CopyState::copying:
      return control::TableState::copying;
    case instantiation::CopyState::indexing:
      return control::TableState::indexing;
    case instantiation::CopyState::copied:
      return control::TableState::copied;
  }
  std::unreachable();
}

}  // namespace

control::InstantiationStatus to_status(const instantiation::ProgressReport& report) {
  control::InstantiationStatus out;
  out.started_at = *report.started_at;
  out.finished_at = report.finished_at;
  out.warnings = report.warnings;
  for (const instantiation::TableProgress& table : report.tables) {
    out.tables.push_back({.table = {table.table.schema, table.table.name},
                          .state = state_of(table.state),
                          .rows_estimated = table.rows_estimated,
                          .rows_copied = table.rows_copied,
                          .bytes_copied = table.bytes_copied,
                          .ranges_total = table.ranges_total,
                          .ranges_copied = table.ranges_copied,
                          .indexes_total = table.indexes_total,
                          .indexes_built = table.indexes_built,
                          .seconds = table.seconds,
                          .copied_at = table.copied_at,
                          .errors_discarded = table.errors_discarded});
  }
  return out;
}

bool is_direct(const control::DestinationDefinition& destination) {
  return !destination.backlog && destination.status != control::DesiredStatus::dropped;
}

const control::DestinationDefinition* direct_destination(const control::StreamDefinition& stream) {
  const auto found = std::ranges::find_if(stream.destinations, is_direct);
  return found == stream.destinations.end() ? nullptr : &*found;
}

control::DestinationMode mode_of(const control::StreamDefinition& stream,
                                 const control::DestinationDefinition& destination) {
  if (stream.receive_from) return control::DestinationMode::receives;
  return destination.send_to ? control::DestinationMode::sends : control::DestinationMode::combined;
}

control::StreamMode mode_of(const control::StreamDefinition& stream) {
  const auto is_kept = [](const auto& destination) { return destination.status != control::DesiredStatus::dropped; };
  const auto first = std::ranges::find_if(stream.destinations, is_kept);
  if (first == stream.destinations.end()) return mode_of(stream, stream.destinations.front());
  const bool several = std::find_if(std::next(first), stream.destinations.end(), is_kept) != stream.destinations.end();
  return several ? control::StreamMode() : mode_of(stream, *first);
}

namespace {

std::vector<control::TableStatus> table_statuses(std::span<const control::TableRef> tables,
                                                 std::span<const telemetry::TableSample> changes,
                                                 const instantiation::ProgressReport& copied, bool running) {
  std::vector<control::TableStatus> out;
  for (const control::TableRef& table : tables) {
    control::TableStatus status;
    const auto changed = std::ranges::find_if(changes, [&](const auto& sample) {
      return sample.schema_name == table.schema && sample.table_name == table.table;
    });
    if (changed != changes.end()) status.changes = *changed;
    status.changes.schema_name = table.schema;
    status.changes.table_name = table.table;
    const auto copy = std::ranges::find(copied.tables, instantiation::TableName{table.schema, table.table},
                                        &instantiation::TableProgress::table);
    const auto state = copy == copied.tables.end() ? instantiation::CopyState::waiting : copy->state;
    status.state = running ? control::TableState::replicating : state_of(state);
    out.push_back(std::move(status));
  }
  return out;
}

}  // namespace

void add_tables(control::DestinationStatus& out, const control::Delivery& delivery,
                std::span<const telemetry::TableSample> changes, const instantiation::ProgressReport& copied,
                bool running) {
  if (delivery.destination.parameters.initial_copy && copied.started_at) out.instantiation = to_status(copied);
  out.tables = table_statuses(delivery.stream.tables, changes, copied, running);
}

}  // namespace thalweg::daemon
