#include "daemon/pipeline.h"

#include <thread>

#include "base/log.h"
#include "daemon/source_objects.h"

namespace thalweg::daemon {

apply::ApplyParameters apply_parameters(const control::StreamParameters& parameters) {
  apply::ApplyParameters out;
  out.parallelism = static_cast<int>(parameters.parallelism);
  out.commit_serialization = parameters.commit_serialization == "full" ? apply::CommitSerialization::full
                             : parameters.commit_serialization == "none"
                                 ? apply::CommitSerialization::none
                                 : apply::CommitSerialization::dependent_transactions;
  out.disable_on_error = parameters.disable_on_error;
  out.data_layer = parameters.data_layer;
  out.group_size = static_cast<size_t>(parameters.group_size);
  out.txn_lcr_spill_threshold = static_cast<size_t>(parameters.txn_lcr_spill_threshold);
  out.txn_age_spill_threshold = std::chrono::seconds(parameters.txn_age_spill_threshold);
  out.spill_limit_bytes = static_cast<uint64_t>(parameters.spill_limit_mb) * 1024 * 1024;
  out.memory_budget_bytes = static_cast<size_t>(parameters.memory_budget_mb) * 1024 * 1024;
  return out;
}

Pipeline::Pipeline(PipelineOptions options) : options_(std::move(options)) {}

Pipeline::~Pipeline() { cut(); }

base::Result<void> Pipeline::start() {
  const control::StreamDefinition& definition = options_.definition;
  queue_ = std::make_unique<queue::LcrQueue>(
      queue::LcrQueueOptions{.slots = static_cast<size_t>(definition.parameters.queue_size),
                             .memory_bytes = static_cast<size_t>(definition.parameters.queue_memory_mb) * 1024 * 1024,
                             .consumers = 1});
  apply_ = std::make_unique<apply::Apply>(apply::ApplyOptions{.stream_id = definition.id,
                                                              .destination_conninfo = definition.destination.conninfo,
                                                              .queue = queue_.get(),
                                                              .consumer = 0,
                                                              .parameters = apply_parameters(definition.parameters),
                                                              .spill_directory = options_.spill_directory,
                                                              .catch_up = options_.catch_up,
                                                              .clock = options_.clock});
  THALWEG_ASSIGN(base::Lsn low_watermark, apply_->start());
  capture_ = capture::make_logical_capture({.stream_id = definition.id,
                                            .source_conninfo = definition.source.conninfo,
                                            .slot = slot_name(definition.id),
                                            .publication = publication_name(definition.id),
                                            .start = low_watermark,
                                            .system_identifier = options_.system_identifier,
                                            .timeline = options_.timeline,
                                            .queue = queue_.get(),
                                            .confirmed_lsn = &apply_->confirmed_lsn(),
                                            .clock = options_.clock});
  capture_->start();
  started_ = true;
  return {};
}

void Pipeline::set_parameters(const control::StreamParameters& parameters) {
  apply_->set_parameters(apply_parameters(parameters));
}

void Pipeline::drain(std::chrono::milliseconds patience) {
  if (!started_ || ended_) return;
  auto deadline = std::chrono::steady_clock::now() + patience;
  capture_->request_stop();
  capture_->await_quiet();
  apply_->request_stop(true);
  while (apply_->status().running && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (apply_->status().running) {
    base::log_event(base::LogLevel::warning, "drain_incomplete", {{"stream", options_.definition.id}});
  }
  cut();
}

void Pipeline::cut() {
  if (!started_ || ended_) return;
  ended_ = true;
  capture_->request_stop();
  apply_->request_stop(false);
  apply_->join();
  capture_->join();
}

std::optional<base::Error> Pipeline::failure() const {
  // Apply first: when it ends, capture only notices that nobody takes its LCRs.
  if (auto error = apply_->status().error) return error;
  return capture_->status().error;
}

bool Pipeline::is_running() const { return apply_->status().running && capture_->status().running; }

telemetry::ComponentSample Pipeline::queue_sample() const {
  queue::LcrQueueGauges gauges = queue_->gauges();
  // Half an arena in use and no slot free are both normal for a moment; a twentieth left is not.
  bool full = gauges.depth + gauges.depth / 20 >= gauges.capacity && gauges.depth > 0;
  bool memory = gauges.depth_bytes + gauges.depth_bytes / 20 >= gauges.memory_bytes;
  return {.type = "QUEUE",
          .name = "queue",
          .sub_component = "",
          .server = 0,
          .state = full     ? "IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES"
                   : memory ? "IN FLOW CONTROL: INSUFFICIENT MEMORY"
                            : "NORMAL",
          .time_ns = {},
          .counters = {{"lcrs", gauges.enqueued_lcrs}, {"bytes", gauges.enqueued_bytes}},
          .gauges = {{"depth", static_cast<int64_t>(gauges.depth)},
                     {"depth_bytes", static_cast<int64_t>(gauges.depth_bytes)},
                     {"capacity", static_cast<int64_t>(gauges.capacity)},
                     {"memory_bytes", static_cast<int64_t>(gauges.memory_bytes)}}};
}

control::StreamStats Pipeline::stats() const {
  control::StreamStats stats;
  stats.id = options_.definition.id;
  stats.components.push_back(capture_->sample());
  stats.components.push_back(queue_sample());
  for (telemetry::ComponentSample& sample : apply_->sample()) stats.components.push_back(std::move(sample));
  auto latency = apply_->latency();
  for (size_t i = 0; i < latency.size(); ++i) {
    if (latency[i] > 0) stats.latency.emplace_back(telemetry::LatencyHistogram::upper_bound_micros(i), latency[i]);
  }
  stats.tables = apply_->tables();
  stats.error_queue_transactions = apply_->parked_transactions();
  return stats;
}

}  // namespace thalweg::daemon
