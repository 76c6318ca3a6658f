#include "daemon/stream_status.h"

namespace thalweg::daemon {

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
                          .indexes_total = table.indexes_total,
                          .indexes_built = table.indexes_built,
                          .seconds = table.seconds,
                          .copied_at = table.copied_at,
                          .errors_discarded = table.errors_discarded});
  }
  return out;
}

std::string_view mode_of(const control::StreamDefinition& definition) {
  if (definition.fans_out()) return "FAN-OUT";
  if (definition.send_to) return "CAPTURE AND PROPAGATION";
  return definition.receive_from ? "PROPAGATION AND APPLY" : "COMBINED CAPTURE AND APPLY";
}

std::vector<control::TableStatus> table_statuses(std::span<const control::TableRef> tables,
                                                 std::span<const telemetry::TableSample> changes,
                                                 const instantiation::ProgressReport& copied, bool running) {
  std::vector<control::TableStatus> out;
  for (const control::TableRef& table : tables) {
    control::TableStatus one;
    const auto changed = std::ranges::find_if(changes, [&](const auto& sample) {
      return sample.schema_name == table.schema && sample.table_name == table.table;
    });
    if (changed != changes.end()) one.changes = *changed;
    one.changes.schema_name = table.schema;
    one.changes.table_name = table.table;
    const auto copy = std::ranges::find(copied.tables, instantiation::TableName{table.schema, table.table},
                                        &instantiation::TableProgress::table);
    const auto state = copy == copied.tables.end() ? instantiation::CopyState::waiting : copy->state;
    one.state = running ? "REPLICATING" : instantiation::name_of(state);
    out.push_back(std::move(one));
  }
  return out;
}

void add_troubles(std::vector<control::TableStatus>& to, std::span<const control::TableStatus> from) {
  for (size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    if (to[i].trouble || !from[i].trouble) continue;
    to[i].trouble = from[i].trouble;
    to[i].state = from[i].state;
  }
}

}  // namespace thalweg::daemon
