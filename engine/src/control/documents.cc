#include "control/documents.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace thalweg::control {
namespace {

using nlohmann::json;

json to_json(const std::optional<telemetry::LastChange>& change) {
  if (!change) return nullptr;
  return {{"at_source", rfc3339(change->at_source)}, {"at_destination", rfc3339(change->at_destination)}};
}

json table_json(const telemetry::TableSample& table) {
  return {{"schema", table.schema_name},
          {"table", table.table_name},
          {"inserts", table.inserts},
          {"updates", table.updates},
          {"deletes", table.deletes},
          {"truncates", table.truncates},
          {"last_change", to_json(table.last_change)}};
}

json optional_time(const std::optional<base::UnixMicros>& time) { return time ? json(rfc3339(*time)) : json(nullptr); }

json to_json(const TableCopyStatus& copy) {
  return {{"schema", copy.table.schema},
          {"table", copy.table.table},
          {"state", name_of(copy.state)},
          {"rows_estimated", copy.rows_estimated},
          {"rows_copied", copy.rows_copied},
          {"bytes_copied", copy.bytes_copied},
          {"ranges_total", copy.ranges_total},
          {"ranges_copied", copy.ranges_copied},
          {"indexes_total", copy.indexes_total},
          {"indexes_built", copy.indexes_built},
          {"seconds", copy.seconds},
          {"copied_at", copy.copied_at ? json(base::to_string(copy.copied_at)) : json(nullptr)},
          {"errors_discarded", copy.errors_discarded}};
}

json to_json(const InstantiationStatus& instantiation) {
  json tables = json::array();
  for (const TableCopyStatus& copy : instantiation.tables) tables.push_back(to_json(copy));
  return {{"started_at", rfc3339(instantiation.started_at)},
          {"finished_at", optional_time(instantiation.finished_at)},
          {"tables", std::move(tables)},
          {"warnings", instantiation.warnings}};
}

json to_json(const TableTrouble& trouble) {
  json renamed_to = nullptr;
  if (trouble.renamed_to) renamed_to = {{"schema", trouble.renamed_to->schema}, {"table", trouble.renamed_to->table}};
  json resolutions = json::array();
  for (const TableResolution resolution : trouble.resolutions) resolutions.push_back(name_of(resolution));
  return {
      {"kind", name_of(trouble.kind)},        {"reason", trouble.reason},        {"cure", trouble.cure},
      {"cure_sql", trouble.cure_sql},         {"since", rfc3339(trouble.since)}, {"renamed_to", std::move(renamed_to)},
      {"resolutions", std::move(resolutions)}};
}

json to_json(std::span<const TableStatus> tables) {
  json out = json::array();
  for (const TableStatus& table : tables) {
    json document = table_json(table.changes);
    document["state"] = name_of(table.state);
    document["trouble"] = table.trouble ? to_json(*table.trouble) : json(nullptr);
    out.push_back(std::move(document));
  }
  return out;
}

json to_json(const telemetry::RulePlace& place) {
  json operations = json::array();
  if (place.inserts_at_source) operations.push_back("INSERT");
  if (place.updates_at_source) operations.push_back("UPDATE");
  return operations;
}

json to_json(const std::optional<RuleCounts>& counts) {
  if (!counts) return nullptr;
  json tables = json::array();
  for (const telemetry::RuleSample& table : counts->tables) {
    tables.push_back({{"schema", table.schema_name},
                      {"table", table.table_name},
                      {"passed", table.passed},
                      {"dropped", table.dropped},
                      {"became_inserts", table.became_inserts},
                      {"became_deletes", table.became_deletes},
                      {"by_policy", table.by_policy},
                      {"at_source", to_json(table.place)},
                      {"at_engine_because", table.place.reason.empty() ? json(nullptr) : json(table.place.reason)}});
  }
  return {{"counted_since", rfc3339(counts->counted_since)}, {"tables", std::move(tables)}};
}

json to_json(const std::optional<telemetry::TransactionRetry>& retry) {
  if (!retry) return nullptr;
  return {{"number", retry->number},
          {"times", retry->times},
          {"at", rfc3339(retry->at)},
          {"error", control::to_json(ReportedError{.error = retry->error, .at = retry->failed_at})}};
}

json to_json(const std::optional<InEffect>& effect) {
  if (!effect) return nullptr;
  return {{"revision", effect->revision}, {"from", base::to_string(effect->from)}, {"since", rfc3339(effect->since)}};
}

json to_json(std::span<const EffectPosition> effects) {
  json out = json::array();
  for (const EffectPosition& at : effects) {
    out.push_back({{"from", base::to_string(at.from)}, {"since", rfc3339(at.since)}});
  }
  return out;
}

json to_json(const DestinationStatus& destination) {
  const BacklogStatus& backlog = destination.backlog;
  return {{"id", destination.id},
          {"status", names_of(destination.state).status},
          {"phase", names_of(destination.state).phase},
          {"mode", name_of(destination.mode)},
          {"error", destination.error ? control::to_json(*destination.error) : json(nullptr)},
          {"retry_at", optional_time(destination.retry_at)},
          {"positions",
           {{"applied", base::to_string(destination.applied)}, {"confirmed", base::to_string(destination.confirmed)}}},
          {"backlog",
           {{"state", name_of(backlog.state)},
            {"frames", backlog.frames},
            {"lcrs", backlog.lcrs},
            {"bytes", backlog.bytes},
            {"age_us", backlog.age.count()},
            {"limit_bytes", backlog.limit_bytes}}},
          {"instantiation", destination.instantiation ? to_json(*destination.instantiation) : json(nullptr)},
          {"counted_since", optional_time(destination.counted_since)},
          {"tables", to_json(std::span(destination.tables))},
          {"rule_counts", to_json(destination.rule_counts)},
          {"retrying_transactions", destination.retrying},
          {"next_retry", to_json(destination.next_retry)},
          {"in_effect", to_json(destination.in_effect)},
          {"effects", to_json(std::span(destination.effects))}};
}

json to_json(const WaitStatus& wait) {
  json blockers = json::array();
  for (const BlockerStatus& blocker : wait.blockers) {
    blockers.push_back({{"pid", blocker.pid},
                        {"user", blocker.user},
                        {"application_name", blocker.application_name},
                        {"state", blocker.state},
                        {"since", optional_time(blocker.since)}});
  }
  return {{"side", wait.side},
          {"destination", wait.destination.empty() ? json(nullptr) : json(wait.destination)},
          {"database", wait.database},
          {"statement", wait.statement},
          {"since", rfc3339(wait.since)},
          {"blockers", std::move(blockers)}};
}

json to_json(const std::optional<KindChangeStatus>& change) {
  if (!change) return nullptr;
  return {{"to", name_of(change->to)},
          {"position", change->position ? json(base::to_string(*change->position)) : json(nullptr)},
          {"waits_for", change->waits_for}};
}

json positions_json(const StreamStatus& stream) {
  return {{"captured", base::to_string(stream.captured)},
          {"applied", base::to_string(stream.applied)},
          {"confirmed", base::to_string(stream.confirmed)},
          {"source_end", base::to_string(stream.source_end)}};
}

json to_json(const StreamStatus& stream) {
  json destinations = json::array();
  for (const DestinationStatus& destination : stream.destinations) destinations.push_back(to_json(destination));
  json waits = json::array();
  for (const WaitStatus& wait : stream.waits) waits.push_back(to_json(wait));
  return {{"id", stream.id},
          {"status", names_of(stream.state).status},
          {"phase", names_of(stream.state).phase},
          {"mode", name_of(stream.mode)},
          {"error", stream.error ? control::to_json(*stream.error) : json(nullptr)},
          {"retry_at", optional_time(stream.retry_at)},
          {"positions", positions_json(stream)},
          {"destinations", std::move(destinations)},
          {"waits", std::move(waits)},
          {"rule_counts", to_json(stream.rule_counts)},
          {"kind_change", to_json(stream.kind_change)}};
}

json to_json(const telemetry::ComponentSample& component) {
  json out = {{"type", component.type},
              {"name", component.name},
              {"sub_component", component.sub_component.empty() ? json(nullptr) : json(component.sub_component)},
              {"state", component.state},
              {"time_ns", nullptr},
              {"counters", json::object()},
              {"gauges", json::object()}};
  if (component.server > 0) out["server"] = component.server;
  if (!component.destination.empty()) out["destination"] = component.destination;
  if (component.time_ns) {
    json& time = out["time_ns"] = json::object();
    for (size_t i = 0; i < telemetry::kActivityCount; ++i) {
      time[std::string(telemetry::name_of(static_cast<telemetry::Activity>(i)))] = (*component.time_ns)[i];
    }
  }
  for (const auto& [name, value] : component.counters) out["counters"][std::string(name)] = value;
  for (const auto& [name, value] : component.gauges) out["gauges"][std::string(name)] = value;
  return out;
}

// Latency, tables and error queue: of a stream, or of one of its destinations.
template <typename Stats>
void add_outcome(json& out, const Stats& stats) {
  json tables = json::array();
  for (const telemetry::TableSample& table : stats.tables) tables.push_back(table_json(table));
  json buckets = json::array();
  for (const auto& [upper, count] : stats.latency) buckets.push_back({upper, count});
  out["latency"] = {{"unit", "us"}, {"buckets", std::move(buckets)}};
  out["tables"] = std::move(tables);
  out["error_queue_transactions"] = stats.error_queue_transactions;
}

json to_json(const StreamStats& stream) {
  json components = json::array();
  for (const telemetry::ComponentSample& component : stream.components) components.push_back(to_json(component));
  json destinations = json::array();
  for (const DestinationStats& destination : stream.destinations) {
    json document = {{"id", destination.id}};
    add_outcome(document, destination);
    destinations.push_back(std::move(document));
  }
  json out = {{"id", stream.id}, {"components", std::move(components)}, {"destinations", std::move(destinations)}};
  add_outcome(out, stream);
  return out;
}

}  // namespace

std::string rfc3339(base::UnixMicros time) {
  int64_t seconds = time.value / 1'000'000;
  int64_t micros = time.value % 1'000'000;
  if (micros < 0) {
    micros += 1'000'000;
    --seconds;
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(seconds)), micros);
}

json side_json(base::ErrorSide side) {
  return side == base::ErrorSide::unknown ? json(nullptr) : json(base::name_of(side));
}

json to_json(const base::Error& error) {
  const bool is_of_row = error.operation != base::RowOperation::unknown;
  return {{"code", base::name_of(error.code)},
          {"class", base::name_of(base::class_of(error.code))},
          {"title", base::title_of(error.code)},
          {"message", error.message},
          {"cure", base::cure_of(error.code)},
          {"side", side_json(base::side_of(error))},
          {"sqlstate", error.sqlstate},
          {"table", error.table},
          {"shows_rows", error.may_show_rows},
          {"operation", is_of_row ? json(base::name_of(error.operation)) : json(nullptr)},
          {"row_missing", error.is_row_missing},
          {"retries", error.retries}};
}

json to_json(const ReportedError& reported) {
  json document = to_json(reported.error);
  document["lsn"] = base::to_string(reported.error.lsn);
  document["xid"] = reported.error.xid.value;
  document["at"] = rfc3339(reported.at);
  return document;
}

namespace {

json propagation_json(const EngineStatus& engine) {
  if (!engine.identity) return nullptr;
  return {{"name", engine.identity->name},
          {"listen", engine.propagation_listen.empty() ? json(nullptr) : json(engine.propagation_listen)},
          {"fingerprint", engine.identity->fingerprint},
          {"not_after", rfc3339(engine.identity->not_after)}};
}

}  // namespace

json identity_document(const IdentityView& identity) {
  return {{"name", identity.name}, {"fingerprint", identity.fingerprint}, {"not_after", rfc3339(identity.not_after)}};
}

json status_document(const EngineStatus& engine, std::span<const StreamStatus> streams) {
  json list = json::array();
  for (const StreamStatus& stream : streams) list.push_back(to_json(stream));
  return {{"engine",
           {{"version", engine.version},
            {"api", 1},
            {"started_at", rfc3339(engine.started_at)},
            {"hostname", engine.hostname},
            {"pid", engine.pid},
            {"desired_revision", engine.desired_revision},
            {"propagation", propagation_json(engine)},
            {"wal_archives", engine.wal_archives}}},
          {"streams", std::move(list)}};
}

json stats_document(const EngineStats& stats) {
  json list = json::array();
  for (const StreamStats& stream : stats.streams) list.push_back(to_json(stream));
  return {{"sampled_at", rfc3339(stats.sampled_at)},
          {"monotonic_ns", stats.monotonic_ns},
          {"process",
           {{"resident_bytes", stats.resident_bytes},
            {"cpu_ns", stats.cpu_ns},
            {"disk_total_bytes", stats.disk_total_bytes},
            {"disk_free_bytes", stats.disk_free_bytes}}},
          {"streams", std::move(list)}};
}

json history_sample_document(const EngineStats& stats, std::span<const StreamStatus> streams) {
  json out = stats_document(stats);
  for (json& stream : out["streams"]) {
    const auto found = std::ranges::find(streams, stream["id"].get_ref<const std::string&>(), &StreamStatus::id);
    const bool known = found != streams.end();
    stream["status"] = known ? json(names_of(found->state).status) : json(nullptr);
    stream["phase"] = known ? json(names_of(found->state).phase) : json(nullptr);
    stream["positions"] = known ? positions_json(*found) : json(nullptr);
  }
  return out;
}

json transactions_document(const telemetry::TransactionSamples& transactions,
                           std::chrono::steady_clock::time_point now) {
  const auto or_null = [](bool known, const json& value) { return known ? value : json(nullptr); };
  json list = json::array();
  for (const telemetry::TransactionSample& transaction : transactions.shown) {
    const auto age = std::chrono::duration_cast<std::chrono::microseconds>(now - transaction.begun).count();
    list.push_back({{"xid", transaction.xid.value},
                    {"state", transaction.state},
                    {"first_lsn", or_null(bool{transaction.first_lsn}, base::to_string(transaction.first_lsn))},
                    {"commit_lsn", or_null(bool{transaction.commit_lsn}, base::to_string(transaction.commit_lsn))},
                    {"age_us", std::max<int64_t>(age, 0)},
                    {"lcrs", transaction.lcrs},
                    {"bytes", transaction.bytes},
                    {"spilled_bytes", transaction.spilled_bytes},
                    {"streamed", transaction.streamed},
                    {"tables", transaction.tables},
                    {"applier", or_null(transaction.applier > 0, transaction.applier)},
                    {"waits_for_xid", or_null(bool{transaction.waits_for}, transaction.waits_for.value)},
                    {"destination", or_null(!transaction.destination.empty(), transaction.destination)},
                    {"retry", to_json(transaction.retry)}});
  }
  return {{"transactions", std::move(list)},
          {"open", transactions.open},
          {"waiting", transactions.waiting},
          {"executing", transactions.executing},
          {"queued_lcrs", transactions.queued_lcrs}};
}

json markers_document(const telemetry::MarkerTrail& trail) {
  json placed = json::array();
  for (const telemetry::PlacedMarker& marker : trail.placed) {
    const bool known = bool{marker.commit_lsn};
    placed.push_back({{"id", marker.id.empty() ? json(nullptr) : json(marker.id)},
                      {"label", marker.label},
                      {"state", telemetry::name_of(marker.state)},
                      {"placed_at", rfc3339(marker.placed_at)},
                      {"commit_lsn", known ? json(base::to_string(marker.commit_lsn)) : json(nullptr)},
                      {"xid", known ? json(marker.xid.value) : json(nullptr)},
                      {"commit_time", known ? json(rfc3339(marker.commit_time)) : json(nullptr)},
                      {"failure", marker.failure.empty() ? json(nullptr) : json(marker.failure)}});
  }
  json stages = json::array();
  for (const telemetry::MarkerStage& stage : trail.stages) {
    json passages = json::array();
    for (const telemetry::MarkerPassage& passage : stage.passages) {
      passages.push_back({{"commit_lsn", base::to_string(passage.commit_lsn)},
                          {"commit_time", rfc3339(passage.commit_time)},
                          {"at", rfc3339(passage.at)}});
    }
    stages.push_back({{"component", stage.component},
                      {"stage", stage.stage},
                      {"destination", stage.destination.empty() ? json(nullptr) : json(stage.destination)},
                      {"passages", std::move(passages)}});
  }
  return {{"placed", std::move(placed)}, {"stages", std::move(stages)}};
}

json failure_document(const base::Error& error) { return {{"error", to_json(error)}}; }

std::string to_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace thalweg::control
