#include "simulation/pipeline.h"

#include <chrono>
#include <string_view>
#include <thread>

#include "apply/error_queue.h"
#include "base/clock.h"
#include "pg/connection.h"

namespace thalweg::simulation {

using namespace std::chrono_literals;

namespace {

constexpr const char* kStream = "simulated";
constexpr int kDrainLooks = 500;
constexpr auto kDrainLook = 10ms;

const base::Clock& system_clock() {
  static const base::SystemClock clock;
  return clock;
}

}  // namespace

Pipeline::Pipeline(const EngineOptions& options, propagation::ReceiverPort* port)
    : options_(options),
      port_(port),
      queue_({.slots = options.queue_slots, .memory_bytes = options.queue_bytes, .consumers = 1}) {}

Pipeline::~Pipeline() { cut(); }

base::Result<void> Pipeline::start() {
  THALWEG_ASSIGN(const base::Lsn from, start_consumer());
  if (options_.part != Part::receiving) {
    start_capture(from, apply_ ? apply_->confirmed_lsn() : sender_->durable_lsn());
    return {};
  }
  const std::atomic<uint64_t>& confirmed = apply_->confirmed_lsn();
  receiver_ = std::make_unique<propagation::Receiver>(propagation::ReceiverOptions{
      .stream_id = kStream,
      .engine = options_.name,
      .peer_engine = options_.peer,
      .queue = &queue_,
      .durable = [&confirmed] { return base::Lsn{confirmed.load(std::memory_order_acquire)}; },
      .clock = &system_clock()});
  return receiver_->start(*port_);
}

base::Result<base::Lsn> Pipeline::start_consumer() {
  if (options_.part != Part::sending) {
    apply_ = std::make_unique<apply::Apply>(apply::ApplyOptions{.stream_id = kStream,
                                                                .destination_conninfo = "host=" + options_.destination,
                                                                .queue = &queue_,
                                                                .consumer = 0,
                                                                .parameters = options_.apply,
                                                                .spill_directory = options_.directory,
                                                                .catch_up = {},
                                                                .clock = &system_clock()});
    return apply_->start();
  }
  sender_ = std::make_unique<propagation::Sender>(
      propagation::SenderOptions{.stream_id = kStream,
                                 .engine = options_.name,
                                 .peer_engine = options_.peer,
                                 .host = "127.0.0.1",
                                 .port = options_.port,
                                 .security = {.tls = {}, .plain_on_loopback = true},
                                 .queue = &queue_,
                                 .consumer = 0,
                                 .clock = &system_clock(),
                                 .compression = options_.compression,
                                 .window_bytes = size_t{4} << 20,
                                 .batch_bytes = options_.batch_bytes,
                                 .versions = {}});
  THALWEG_TRY(sender_->start());
  return sender_->await_receiver(2000ms);
}

void Pipeline::start_capture(base::Lsn from, const std::atomic<uint64_t>& confirmed) {
  capture_ = capture::make_logical_capture({.stream_id = kStream,
                                            .source_conninfo = "host=source",
                                            .slot = "thalweg_simulated",
                                            .publications = {"thalweg_simulated"},
                                            .start = from,
                                            .system_identifier = "7000",
                                            .timeline = 1,
                                            .queue = &queue_,
                                            .confirmed_lsn = &confirmed,
                                            .clock = &system_clock(),
                                            .heartbeat_interval = options_.heartbeat_interval});
  capture_->start();
}

std::optional<base::Error> Pipeline::failure() const {
  if (apply_ && apply_->status().error) return apply_->status().error;
  if (sender_ && sender_->status().error) return sender_->status().error;
  if (receiver_ && receiver_->status().error) return receiver_->status().error;
  return capture_ ? capture_->status().error : std::nullopt;
}

void Pipeline::set_parameters(const apply::ApplyParameters& parameters) {
  if (apply_) apply_->set_parameters(parameters);
}

std::string Pipeline::states() const {
  std::string text;
  const auto add = [&](std::string_view state) {
    text += text.empty() ? "" : " | ";
    text += state;
  };
  if (capture_) add(capture_->status().state);
  if (receiver_) add(receiver_->status().state);
  if (sender_) add(sender_->status().state);
  if (!apply_) return text;
  for (const auto& sample : apply_->sample()) add(sample.state);
  return text;
}

base::Result<std::vector<telemetry::ParkedTransaction>> Pipeline::parked() const {
  if (!apply_) return std::vector<telemetry::ParkedTransaction>{};
  THALWEG_ASSIGN(pg::Connection connection,
                 pg::Connection::open("host=" + options_.destination, {.search_path = "public"}));
  return apply::list_parked(connection, kStream, {.limit = telemetry::kParkedListMax});
}

base::Result<void> Pipeline::execute_parked(int64_t id) {
  THALWEG_ASSIGN(pg::Connection connection,
                 pg::Connection::open("host=" + options_.destination, {.search_path = "public"}));
  auto executed = apply::execute_parked(std::move(connection), kStream, id);
  apply_->note_errors_changed();
  return executed;
}

void Pipeline::drain() {
  if (capture_) {
    capture_->request_stop();
    capture_->await_quiet();
  }
  if (receiver_) {
    receiver_->request_stop();
    receiver_->join();
  }
  if (apply_) apply_->request_stop(true);
  if (sender_) sender_->request_stop(true);
  const auto runs = [this] { return apply_ ? apply_->status().running : sender_->status().running; };
  for (int looks = 0; looks < kDrainLooks && runs(); ++looks) std::this_thread::sleep_for(kDrainLook);
}

void Pipeline::cut() {
  if (apply_) {
    apply_->request_stop(false);
    apply_->join();
  }
  if (sender_) {
    sender_->request_stop(false);
    sender_->join();
  }
  if (receiver_) {
    receiver_->request_stop();
    receiver_->join();
  }
  if (capture_) {
    capture_->request_stop();
    capture_->join();
  }
}

}  // namespace thalweg::simulation
