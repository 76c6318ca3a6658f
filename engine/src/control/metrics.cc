#include "control/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace thalweg::control {
namespace {

constexpr std::string_view kComponent = "stream,component,sub_component,server,destination";

// Names of counters and gauges in a ComponentSample, and the metrics that show them.
struct SampleMetric {
  std::string_view sample;  // name in the sample; empty: the metric comes from elsewhere
  MetricSpec spec;
  double scale = 1;  // metric = sample * scale: base units are seconds and bytes
};

constexpr double kMicros = 1e-6;
constexpr auto kMetrics = std::to_array<SampleMetric>({
    {"lcrs",
     {"thalweg_lcrs_total", "counter", "", kComponent, "Row changes and truncates that the component has handled."}},
    {"transactions",
     {"thalweg_transactions_total", "counter", "", kComponent, "Transactions that the component has handled."}},
    {"bytes",
     {"thalweg_bytes_total", "counter", "bytes", kComponent,
      "Bytes of the frames that the component has handled, transaction marks included."}},
    {"wal_bytes", {"thalweg_wal_bytes_total", "counter", "bytes", kComponent, "WAL that capture has passed."}},
    {"batches",
     {"thalweg_batches_total", "counter", "", kComponent,
      "Batches of changes that came from the source's output plugin thalweg_output; none come from pgoutput."}},
    {"aborted_transactions",
     {"thalweg_aborted_transactions_total", "counter", "", kComponent,
      "Streamed transactions that the source rolled back."}},
    {"duplicate_transactions",
     {"thalweg_duplicate_transactions_total", "counter", "", kComponent,
      "Transactions suppressed after a restart because they had been applied."}},
    {"spilled_lcrs",
     {"thalweg_spilled_lcrs_total", "counter", "", kComponent,
      "Row changes and truncates written to the engine's disk."}},
    {"spilled_transactions",
     {"thalweg_spilled_transactions_total", "counter", "", kComponent, "Transactions written to the engine's disk."}},
    {"spilled_bytes",
     {"thalweg_spilled_bytes_total", "counter", "bytes", kComponent,
      "Bytes moved to the engine's disk, before compression."}},
    {"received_bytes",
     {"thalweg_staged_wal_bytes_total", "counter", "bytes", kComponent,
      "WAL that a stream with log mining has staged, from the source or its archive."}},
    {"archived_bytes",
     {"thalweg_archived_wal_bytes_total", "counter", "bytes", kComponent,
      "The part of the staged WAL that came from the archive."}},
    {"mined_bytes",
     {"thalweg_mined_wal_bytes_total", "counter", "bytes", kComponent,
      "WAL that a stream with log mining has read from what is staged."}},
    {"image_bytes",
     {"thalweg_mined_image_bytes_total", "counter", "bytes", kComponent,
      "The part of the mined WAL that is images of whole pages, as the source writes them after checkpoints."}},
    {"metadata_hits",
     {"thalweg_metadata_hits_total", "counter", "", kComponent,
      "Look-ups of a table's metadata that the cache answered: the reader's per transaction and table, an applier's "
      "per group and table."}},
    {"metadata_misses",
     {"thalweg_metadata_misses_total", "counter", "", kComponent,
      "Look-ups of a table's metadata that had to be answered from the destination."}},
    {"metadata_loads",
     {"thalweg_metadata_loads_total", "counter", "", kComponent,
      "Times that a table's metadata was loaded from the destination."}},
    {"metadata_invalidations",
     {"thalweg_metadata_invalidations_total", "counter", "", kComponent,
      "Tables whose cached metadata was given up because source or destination changed them."}},
    {"metadata_purged",
     {"thalweg_metadata_purged_total", "counter", "", kComponent,
      "Tables whose given-up metadata was freed, once no transaction could use it."}},
    {"metadata_replaced",
     {"thalweg_metadata_replaced_total", "counter", "", kComponent,
      "Tables whose cached metadata made room for another's."}},
    {"groups",
     {"thalweg_groups_total", "counter", "", kComponent,
      "Destination transactions, each of one or more source transactions."}},
    {"dependent_groups",
     {"thalweg_dependent_groups_total", "counter", "", kComponent, "Groups that had to wait for another."}},
    {"retried_groups",
     {"thalweg_retried_groups_total", "counter", "", kComponent, "Groups rolled back and executed again."}},
    {"retried_transactions",
     {"thalweg_retried_transactions_total", "counter", "", kComponent,
      "Transactions that an error policy has retried."}},
    {"errors", {"thalweg_errors_total", "counter", "", kComponent, "Transactions that failed for good."}},
    {"sets", {"thalweg_sets_total", "counter", "", kComponent, "Set-based statements."}},
    {"data_layer_calls",
     {"thalweg_data_layer_calls_total", "counter", "", kComponent,
      "Calls of the destination's extension thalweg_datalayer."}},
    {"merged_updates",
     {"thalweg_merged_updates_total", "counter", "", kComponent,
      "Updates that were left out because a later change of their row, in the same destination transaction, made them "
      "unnecessary."}},
    {"fallbacks",
     {"thalweg_fallbacks_total", "counter", "", kComponent, "Sets that failed and were executed row by row."}},
    {"deadlocks",
     {"thalweg_deadlocks_total", "counter", "", kComponent,
      "Deadlocks in which the applier gave way: found by the destination, or by the coordinator between commit order "
      "and locks. Its group is executed again."}},
    {"latency_us",
     {"thalweg_component_latency_seconds", "gauge", "seconds", kComponent,
      "Age of the newest LCR when the component handled it."},
     kMicros},
    {"marker_latency_us",
     {"thalweg_marker_latency_seconds", "gauge", "seconds", kComponent,
      "Age of the last marker when it passed the component: a heartbeat, also on an idle stream."},
     kMicros},
    {"streaming",
     {"thalweg_capture_streaming", "gauge", "", kComponent,
      "Whether large transactions come before their commit: 1, or 0 where the source does not say which of their "
      "subtransactions were rolled back, and where a rule reads the tag or the commit time."}},
    {"depth",
     {"thalweg_queue_depth", "gauge", "", kComponent,
      "LCRs that were not dequeued: of the queue, by its slowest consumer; of a destination with a backlog, in the "
      "queue's memory and on disk."}},
    {"depth_bytes", {"thalweg_queue_bytes", "gauge", "bytes", kComponent, "Memory of the queue in use."}},
    {"capacity", {"thalweg_queue_capacity", "gauge", "", kComponent, "LCRs that the queue can hold."}},
    {"memory_bytes", {"thalweg_queue_memory_bytes", "gauge", "bytes", kComponent, "Memory of the queue."}},
    {"open_transactions",
     {"thalweg_open_transactions", "gauge", "", kComponent, "Transactions that the apply reader assembles."}},
    {"held_bytes",
     {"thalweg_held_bytes", "gauge", "bytes", kComponent,
      "Memory of LCRs that the apply reader and the appliers hold."}},
    {"staged_bytes",
     {"thalweg_staged_wal_bytes", "gauge", "bytes", kComponent, "Disk space of the source's staged WAL."}},
    {"kept_bytes",
     {"thalweg_kept_wal_bytes", "gauge", "bytes", kComponent,
      "Staged WAL that no destination needs any more, kept for searches; it goes first at the limit."}},
    {"staging_limit_bytes",
     {"thalweg_staged_wal_limit_bytes", "gauge", "bytes", kComponent, "The limit of the staged WAL's disk space."}},
    {"archive_wait_us",
     {"thalweg_archive_wait_seconds", "gauge", "seconds", kComponent,
      "For how long the archive has lacked the WAL that is next, while the source cannot be read; 0 where it does "
      "not."},
     kMicros},
    {"open_wal_bytes",
     {"thalweg_open_transaction_wal_bytes", "gauge", "bytes", kComponent,
      "WAL that was mined since the first record of the oldest transaction that is open at the source."}},
    {"spill_bytes", {"thalweg_spill_bytes", "gauge", "bytes", kComponent, "Disk space of spilled LCRs, compressed."}},
    {"spill_transactions",
     {"thalweg_spill_transactions", "gauge", "", kComponent, "Transactions that are on the engine's disk now."}},
    {"spill_frames",
     {"thalweg_spill_frames", "gauge", "", kComponent,
      "LCRs and marks of transactions on the engine's disk that a slow consumer has not taken yet."}},
    {"spill_age_us",
     {"thalweg_spill_age_seconds", "gauge", "seconds", kComponent, "Age of the oldest LCRs on the engine's disk."},
     kMicros},
    {"metadata_bytes",
     {"thalweg_metadata_bytes", "gauge", "bytes", kComponent,
      "Memory of the metadata cache, with what waits to be purged."}},
    {"metadata_tables",
     {"thalweg_metadata_tables", "gauge", "", kComponent,
      "Tables in the metadata cache, with what waits to be purged."}},
    {"waiting_groups",
     {"thalweg_waiting_groups", "gauge", "", kComponent, "Groups that wait for an applier or a dependency."}},
    {"low_watermark_lag_us",
     {"thalweg_low_watermark_lag_seconds", "gauge", "seconds", kComponent, "Age of the low watermark."},
     kMicros},
    {"",
     {"thalweg_component_time_seconds_total", "counter", "seconds",
      "stream,component,sub_component,server,destination,activity", "Where the component's thread spent its time."}},
    {"",
     {"thalweg_latency_seconds", "histogram", "seconds", "stream,destination",
      "Destination commit time minus source commit time. The sum is an upper estimate."}},
    {"",
     {"thalweg_table_changes_total", "counter", "", "stream,destination,schema,table,operation",
      "Row changes applied to a table, and truncates."}},
    {"",
     {"thalweg_conflicts_total", "counter", "", "stream,destination,schema,table,kind",
      "Changes of a table that the destination's rows kept from being applied, by the kind of conflict, whatever was "
      "done with them."}},
    {"",
     {"thalweg_rule_changes_total", "counter", "", "stream,destination,schema,table,outcome",
      "Changes of a table that its rules have judged, by outcome: passed, dropped, became_insert, became_delete. "
      "Large transactions are judged before they commit: what the source rolls back of them counts, too. What the "
      "source does not send is not counted. "
      "Without a destination: by the stream's rules."}},
    {"",
     {"thalweg_rule_policy_changes_total", "counter", "", "stream,destination,schema,table",
      "Changes of a table that on_error of a rule has decided, because its condition could not be evaluated. They are "
      "among those of thalweg_rule_changes_total. Without a destination: by the stream's rules."}},
    {"",
     {"thalweg_error_queue_transactions", "gauge", "", "stream,destination",
      "Transactions parked in the destination's error queue."}},
    {"",
     {"thalweg_stream_status", "gauge", "", "stream,status", "1 for the stream's observed status, 0 for the others."}},
    {"", {"thalweg_stream_phase", "gauge", "", "stream,phase", "1 for the stream's present phase."}},
    {"",
     {"thalweg_position_bytes", "gauge", "bytes", "stream,destination,position",
      "Positions in the source's WAL: captured, applied, confirmed, source_end."}},
    {"",
     {"thalweg_destination_status", "gauge", "", "stream,destination,status",
      "1 for the observed status of a destination, 0 for the others."}},
    {"",
     {"thalweg_destination_phase", "gauge", "", "stream,destination,phase",
      "1 for the present phase of a destination."}},
    {"",
     {"thalweg_copied_rows", "gauge", "", "stream,destination,schema,table", "Rows that the initial copy has copied."}},
    {"",
     {"thalweg_copied_bytes", "gauge", "bytes", "stream,destination,schema,table",
      "Bytes that the initial copy has copied."}},
    {"", {"thalweg_engine_info", "gauge", "", "version", "Always 1."}},
    {"", {"thalweg_desired_revision", "gauge", "", "", "Revision of the desired state that the engine holds."}},
    {"", {"thalweg_process_resident_bytes", "gauge", "bytes", "", "Resident memory of the engine."}},
    {"", {"thalweg_process_cpu_seconds_total", "counter", "seconds", "", "Processor time of the engine."}},
    {"", {"thalweg_disk_bytes", "gauge", "bytes", "", "Size of the file system that holds the engine's spills."}},
    {"", {"thalweg_disk_free_bytes", "gauge", "bytes", "", "What is free of it for the engine."}},
});

constexpr auto kSpecs = [] {
  std::array<MetricSpec, kMetrics.size()> specs{};
  for (size_t i = 0; i < specs.size(); ++i) specs[i] = kMetrics[i].spec;
  return specs;
}();

std::string escape_label(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escape_label(value));
}

// Collects lines by metric: the format wants a metric's lines together, below its HELP and TYPE.
class Exposition {
 public:
  // `metric`: of kSpecs.
  void add(std::string_view metric, const std::string& labels, double value, std::string_view suffix = "") {
    lines_[metric] += labels.empty() ? fmt::format("{}{} {:.15g}\n", metric, suffix, value)
                                     : fmt::format("{}{}{{{}}} {:.15g}\n", metric, suffix, labels, value);
  }
  std::string text() const {
    std::string out;
    for (const MetricSpec& spec : kSpecs) {
      auto found = lines_.find(spec.name);
      if (found == lines_.end()) continue;
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", spec.name, spec.help, spec.name, spec.type, found->second);
    }
    return out;
  }

 private:
  std::map<std::string_view, std::string> lines_;
};

void add_component(Exposition& out, const std::string& stream, const telemetry::ComponentSample& component) {
  std::string labels = fmt::format("{},{},{},{}", stream, label("component", component.type),
                                   label("sub_component", component.sub_component),
                                   label("server", component.server > 0 ? std::to_string(component.server) : "")) +
                       "," + label("destination", component.destination);
  auto add = [&](std::string_view sample, double value) {
    auto found = std::ranges::find(kMetrics, sample, &SampleMetric::sample);
    if (found != kMetrics.end()) out.add(found->spec.name, labels, value * found->scale);
  };
  for (const auto& [name, value] : component.counters) add(name, static_cast<double>(value));
  for (const auto& [name, value] : component.gauges) add(name, static_cast<double>(value));
  if (!component.time_ns) return;
  for (size_t i = 0; i < telemetry::kActivityCount; ++i) {
    std::string_view activity = telemetry::name_of(static_cast<telemetry::Activity>(i));
    out.add("thalweg_component_time_seconds_total", labels + "," + label("activity", activity),
            static_cast<double>((*component.time_ns)[i]) * 1e-9);
  }
}

using Latency = std::vector<std::pair<uint64_t, uint64_t>>;

void add_latency(Exposition& out, const std::string& labels, const Latency& latency) {
  constexpr std::string_view kName = "thalweg_latency_seconds";
  uint64_t total = 0;
  double sum = 0;
  for (const auto& [upper, count] : latency) {
    total += count;
    sum += static_cast<double>(upper) * static_cast<double>(count) * kMicros;
  }
  // Powers of two from 256 us to 71 minutes: bounds that the finer histogram also has, so nothing is interpolated.
  for (uint64_t bound = 256; bound <= uint64_t{1} << 32; bound *= 2) {
    uint64_t below = 0;
    for (const auto& [upper, count] : latency) below += upper <= bound ? count : 0;
    out.add(kName, fmt::format("{},le=\"{:.9g}\"", labels, static_cast<double>(bound) * kMicros),
            static_cast<double>(below), "_bucket");
  }
  out.add(kName, labels + ",le=\"+Inf\"", static_cast<double>(total), "_bucket");
  out.add(kName, labels, sum, "_sum");
  out.add(kName, labels, static_cast<double>(total), "_count");
}

// Adds the metrics of the changes that reached a destination.
void add_outcome(Exposition& out, const std::string& labels, const DestinationStats& stats) {
  add_latency(out, labels, stats.latency);
  out.add("thalweg_error_queue_transactions", labels, static_cast<double>(stats.error_queue_transactions));
  for (const telemetry::TableSample& table : stats.tables) {
    const std::string changed =
        fmt::format("{},{},{}", labels, label("schema", table.schema_name), label("table", table.table_name));
    auto add = [&](std::string_view operation, uint64_t count) {
      out.add("thalweg_table_changes_total", changed + "," + label("operation", operation), static_cast<double>(count));
    };
    add("insert", table.inserts);
    add("update", table.updates);
    add("delete", table.deletes);
    add("truncate", table.truncates);
    for (size_t kind = 0; kind < table.conflicts.size(); ++kind) {
      if (table.conflicts[kind] == 0) continue;
      out.add("thalweg_conflicts_total", changed + "," + label("kind", telemetry::kConflictKindNames[kind]),
              static_cast<double>(table.conflicts[kind]));
    }
  }
}

std::string target_labels(const std::string& stream, std::string_view destination) {
  return stream + "," + label("destination", destination);
}

void add_stats(Exposition& out, const StreamStats& stats) {
  std::string stream = label("stream", stats.id);
  for (const telemetry::ComponentSample& component : stats.components) add_component(out, stream, component);
  // Each by itself: whoever reads them adds them up.
  for (const DestinationStats& destination : stats.destinations)
    add_outcome(out, target_labels(stream, destination.id), destination);
}

void add_rule_counts(Exposition& out, const std::string& target, const RuleCounts& counts) {
  for (const telemetry::RuleSample& table : counts.tables) {
    const std::string labels =
        fmt::format("{},{},{}", target, label("schema", table.schema_name), label("table", table.table_name));
    auto add = [&](std::string_view outcome, uint64_t count) {
      out.add("thalweg_rule_changes_total", labels + "," + label("outcome", outcome), static_cast<double>(count));
    };
    add("passed", table.passed);
    add("dropped", table.dropped);
    add("became_insert", table.became_inserts);
    add("became_delete", table.became_deletes);
    out.add("thalweg_rule_policy_changes_total", labels, static_cast<double>(table.by_policy));
  }
}

void add_copy(Exposition& out, const std::string& labels, const std::optional<InstantiationStatus>& instantiation) {
  if (!instantiation) return;
  for (const TableCopyStatus& copy : instantiation->tables) {
    const std::string copied =
        fmt::format("{},{},{}", labels, label("schema", copy.table.schema), label("table", copy.table.table));
    out.add("thalweg_copied_rows", copied, static_cast<double>(copy.rows_copied));
    out.add("thalweg_copied_bytes", copied, static_cast<double>(copy.bytes_copied));
  }
}

void add_position(Exposition& out, const std::string& labels, std::string_view name, base::Lsn lsn) {
  out.add("thalweg_position_bytes", labels + "," + label("position", name), static_cast<double>(lsn.value));
}

// One series for each status, of which one is 1, and one for the phase.
void add_state(Exposition& out, std::string_view status_metric, std::string_view phase_metric,
               const std::string& labels, State state) {
  const StateNames names = names_of(state);
  for (const State each : {State::replicating, State::disabled, State::aborted, State::dropped}) {
    const std::string_view status = names_of(each).status;
    out.add(status_metric, labels + "," + label("status", status), status == names.status ? 1 : 0);
  }
  out.add(phase_metric, labels + "," + label("phase", names.phase), 1);
}

void add_status(Exposition& out, const StreamStatus& status) {
  const std::string stream = label("stream", status.id);
  add_state(out, "thalweg_stream_status", "thalweg_stream_phase", stream, status.state);
  const std::string labels = target_labels(stream, "");
  add_position(out, labels, "captured", status.captured);
  add_position(out, labels, "applied", status.applied);
  add_position(out, labels, "confirmed", status.confirmed);
  add_position(out, labels, "source_end", status.source_end);
  if (status.rule_counts) add_rule_counts(out, labels, *status.rule_counts);
  for (const DestinationStatus& destination : status.destinations) {
    const std::string destination_labels = target_labels(stream, destination.id);
    add_state(out, "thalweg_destination_status", "thalweg_destination_phase", destination_labels, destination.state);
    add_position(out, destination_labels, "applied", destination.applied);
    add_position(out, destination_labels, "confirmed", destination.confirmed);
    add_copy(out, destination_labels, destination.instantiation);
    if (destination.rule_counts) add_rule_counts(out, destination_labels, *destination.rule_counts);
  }
}

}  // namespace

std::span<const MetricSpec> metric_specs() { return kSpecs; }

std::string metrics_text(const EngineStatus& engine, std::span<const StreamStatus> streams, const EngineStats& stats) {
  Exposition out;
  out.add("thalweg_engine_info", label("version", engine.version), 1);
  out.add("thalweg_desired_revision", "", static_cast<double>(engine.desired_revision));
  out.add("thalweg_process_resident_bytes", "", static_cast<double>(stats.resident_bytes));
  out.add("thalweg_process_cpu_seconds_total", "", static_cast<double>(stats.cpu_ns) * 1e-9);
  out.add("thalweg_disk_bytes", "", static_cast<double>(stats.disk_total_bytes));
  out.add("thalweg_disk_free_bytes", "", static_cast<double>(stats.disk_free_bytes));
  for (const StreamStatus& status : streams) add_status(out, status);
  for (const StreamStats& stream : stats.streams) add_stats(out, stream);
  return out.text();
}

}  // namespace thalweg::control
