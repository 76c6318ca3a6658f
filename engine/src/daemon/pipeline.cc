#include "daemon/pipeline.h"

#include <thread>

#include "base/log.h"
#include "daemon/queue_sample.h"

namespace thalweg::daemon {
namespace {

queue::LcrQueueOptions queue_options(const control::StreamParameters& parameters) {
  return {.slots = static_cast<size_t>(parameters.queue_size),
          .memory_bytes = static_cast<size_t>(parameters.queue_memory_mb) * 1024 * 1024,
          .consumers = 1};
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options)
    : options_(std::move(options)),
      queue_(queue_options(options_.definition.parameters)),
      consumer_(options_.definition.send_to
                    ? make_sender_consumer(options_.definition, options_.identity.timeline, *options_.peering, frames_,
                                           *options_.clock)
                    : make_apply_consumer(options_.definition, options_.catch_up, options_.spill_directory, frames_,
                                          *options_.clock, options_.work)),
      producer_(options_.definition.receive_from
                    ? make_receiver_producer(options_.definition, options_.identity.timeline, *options_.peering, queue_,
                                             *options_.clock)
                    : make_capture_producer(options_.definition, options_.identity, queue_, *options_.clock)),
      made_at_(options_.clock->unix_now()) {}

Pipeline::~Pipeline() { cut(); }

base::Result<void> Pipeline::start() {
  THALWEG_ASSIGN(const base::Lsn from, consumer_->start());
  if (auto produces = producer_->start(from, consumer_->confirmed()); !produces) {
    consumer_->request_stop(false);
    consumer_->join();
    return produces;
  }
  started_ = true;
  return {};
}

void Pipeline::set_parameters(const control::StreamParameters& parameters) { consumer_->set_parameters(parameters); }

void Pipeline::drain(std::chrono::milliseconds patience) {
  if (!started_ || ended_) return;
  auto deadline = std::chrono::steady_clock::now() + patience;
  producer_->quiesce();
  consumer_->request_stop(true);
  // A link that breaks now is not waited for (the receiver may have been stopped first): the source keeps what it
  // lacks.
  while (consumer_->is_running() && !consumer_->trouble() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (consumer_->is_running()) {
    base::log_event(base::LogLevel::warning, "drain_incomplete", {{"stream", options_.definition.id}});
  }
  cut();
}

void Pipeline::cut() {
  if (!started_ || ended_) return;
  ended_ = true;
  consumer_->request_stop(false);
  consumer_->join();
  producer_->join();
}

std::optional<base::Error> Pipeline::failure() const {
  // The consumer first: when it ends, the producer only notices that nobody takes its LCRs.
  if (auto error = consumer_->failure()) return error;
  return producer_->failure();
}

std::optional<base::Error> Pipeline::trouble() const {
  if (auto error = consumer_->trouble()) return error;
  return producer_->trouble();
}

bool Pipeline::caught_up() { return producer_->caught_up(consumer_->applied()); }

std::optional<base::UnixMicros> Pipeline::counted_since() const {
  if (options_.definition.send_to) return std::nullopt;
  return made_at_;
}

PipelinePositions Pipeline::positions() const {
  const capture::CaptureStatus capture = producer_->capture_status();
  return {.captured = capture.captured,
          .source_end = capture.source_end,
          .applied = consumer_->applied(),
          .confirmed = options_.definition.receive_from
                           ? base::Lsn{consumer_->confirmed().load(std::memory_order_acquire)}
                           : capture.confirmed};
}

control::StreamStats Pipeline::stats() const {
  control::StreamStats stats;
  stats.id = options_.definition.id;
  stats.components.push_back(producer_->sample());
  stats.components.push_back(queue_sample(queue_));
  consumer_->add_to(stats);
  return stats;
}

telemetry::MarkerTrail Pipeline::markers() const {
  telemetry::MarkerTrail trail;
  producer_->add_to(trail);
  consumer_->add_to(trail);
  return trail;
}

}  // namespace thalweg::daemon
