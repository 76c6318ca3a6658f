#include "simulation/engine.h"

#include <chrono>
#include <thread>

#include "apply/apply.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "propagation/receiver.h"
#include "propagation/receiver_port.h"
#include "propagation/sender.h"
#include "queue/lcr_queue.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

using base::Error;
using base::ErrorCode;
using namespace std::chrono_literals;

namespace {

constexpr const char* kStream = "simulated";
constexpr uint16_t kPort = 8700;

// What the world's faults may well cause. Anything else is a finding.
bool is_expected(ErrorCode code) {
  switch (code) {
    case ErrorCode::connection_lost:
    case ErrorCode::database_unreachable:
    case ErrorCode::database_busy:
    case ErrorCode::slot_in_use:
    case ErrorCode::stream_in_use:
    case ErrorCode::disk_full:
    case ErrorCode::file_error:
    case ErrorCode::spill_limit_reached:
    case ErrorCode::corrupt_frame:
    case ErrorCode::engine_unreachable:
    case ErrorCode::link_lost:
    case ErrorCode::link_refused:
    case ErrorCode::receiver_restarted:
    case ErrorCode::sender_restarted:
    case ErrorCode::engine_stopping:
      return true;
    default:
      return false;
  }
}

std::string states_of(const std::vector<telemetry::ComponentSample>& samples) {
  std::string text;
  for (const auto& sample : samples) text += fmt::format("{}{}", text.empty() ? "" : " | ", sample.state);
  return text;
}

base::SystemClock& system_clock() {
  static base::SystemClock clock;
  return clock;
}

}  // namespace

// Lives as long as its process.
class ReceiverPortOwner {
 public:
  explicit ReceiverPortOwner(const std::string& engine)
      : port_({.engine = engine,
               .address = "127.0.0.1",
               .port = kPort,
               .security = {.tls = {}, .plain_on_loopback = true}}) {}
  propagation::ReceiverPort& get() { return port_; }

 private:
  propagation::ReceiverPort port_;
};

void Engine::start() {
  processes_.push_back(std::make_unique<Process>(Process{.name = options_.name}));
  process_ = processes_.back().get();
  scheduler_.spawn(*process_, [this] { run(); });
}

void Engine::crash() {
  if (process_ == nullptr) return;
  scheduler_.kill(*process_);
  process_ = nullptr;
}

void Engine::run() {
  std::filesystem::create_directories(options_.directory);
  std::unique_ptr<ReceiverPortOwner> port;
  auto pause = 100ms;
  while (true) {
    ++pipelines_;
    std::optional<Error> ended;
    if (options_.part == Part::receiving && !port) {
      port = std::make_unique<ReceiverPortOwner>(options_.name);
      if (auto listens = port->get().start(); !listens) ended = listens.error();
      if (ended) port.reset();
    }
    if (!ended) {
      ended = options_.part == Part::whole     ? run_whole()
              : options_.part == Part::sending ? run_sending()
                                               : run_receiving(*port);
    }
    if (!ended) {
      pause = 100ms;
      continue;
    }
    trace("pipeline ends: {}: {}", base::name_of(ended->code), ended->message);
    if (!is_expected(ended->code))
      fail("{} fails with {}: {}", options_.name, base::name_of(ended->code), ended->message);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 2000ms);
  }
}

// Until something of the pipeline fails, or it is to be restarted in order (no error).
template <typename Failure, typename States>
std::optional<Error> Engine::watch(Failure failure, States states) {
  restart_ = false;
  std::string shown;
  while (!restart_) {
    if (auto error = failure()) return error;
    if (std::string now = states(); now != shown) trace("{}", shown = std::move(now));
    std::this_thread::sleep_for(50ms);
  }
  trace("restarts in order");
  return std::nullopt;
}

std::optional<Error> Engine::run_whole() {
  queue::LcrQueue queue({.slots = options_.queue_slots, .memory_bytes = options_.queue_bytes, .consumers = 1});
  apply::Apply apply({.stream_id = kStream,
                      .destination_conninfo = "host=destination",
                      .queue = &queue,
                      .consumer = 0,
                      .parameters = options_.apply,
                      .spill_directory = options_.directory,
                      .catch_up = {},
                      .clock = &system_clock()});
  const auto from = apply.start();
  if (!from) return from.error();
  const auto capture = capture::make_logical_capture({.stream_id = kStream,
                                                      .source_conninfo = "host=source",
                                                      .slot = "thalweg_simulated",
                                                      .publication = "thalweg_simulated",
                                                      .start = *from,
                                                      .system_identifier = "7000",
                                                      .timeline = 1,
                                                      .queue = &queue,
                                                      .confirmed_lsn = &apply.confirmed_lsn(),
                                                      .clock = &system_clock()});
  capture->start();
  auto ended = watch(
      [&]() -> std::optional<Error> {
        apply.set_parameters(options_.apply);
        if (auto error = apply.status().error) return error;
        return capture->status().error;
      },
      [&] {
        return fmt::format("{} {} || {}", base::to_string(capture->status().confirmed), capture->status().state,
                           states_of(apply.sample()));
      });
  if (!ended) {
    capture->request_stop();
    capture->await_quiet();
    apply.request_stop(true);
    while (apply.status().running) std::this_thread::sleep_for(10ms);
    ended = apply.status().error;
  }
  apply.request_stop(false);
  apply.join();
  capture->request_stop();
  capture->join();
  return ended;
}

std::optional<Error> Engine::run_sending() {
  queue::LcrQueue queue({.slots = options_.queue_slots, .memory_bytes = options_.queue_bytes, .consumers = 1});
  propagation::Sender sender({.stream_id = kStream,
                              .engine = options_.name,
                              .peer_engine = "receiver",
                              .host = "127.0.0.1",
                              .port = kPort,
                              .security = {.tls = {}, .plain_on_loopback = true},
                              .queue = &queue,
                              .consumer = 0,
                              .clock = &system_clock(),
                              .compression = options_.compression,
                              .window_bytes = size_t{4} << 20,
                              .batch_bytes = options_.batch_bytes,
                              .versions = {}});
  if (auto started = sender.start(); !started) return started.error();
  const auto from = sender.await_receiver(2000ms);
  if (!from) return from.error();
  const auto capture = capture::make_logical_capture({.stream_id = kStream,
                                                      .source_conninfo = "host=source",
                                                      .slot = "thalweg_simulated",
                                                      .publication = "thalweg_simulated",
                                                      .start = *from,
                                                      .system_identifier = "7000",
                                                      .timeline = 1,
                                                      .queue = &queue,
                                                      .confirmed_lsn = &sender.durable_lsn(),
                                                      .clock = &system_clock()});
  capture->start();
  auto ended = watch(
      [&]() -> std::optional<Error> {
        if (auto error = sender.status().error) return error;
        return capture->status().error;
      },
      [&] {
        return fmt::format("{} {} || {}", base::to_string(capture->status().confirmed), capture->status().state,
                           sender.status().state);
      });
  if (!ended) {
    capture->request_stop();
    capture->await_quiet();
    sender.request_stop(true);
    for (int i = 0; i < 300 && sender.status().running; ++i) std::this_thread::sleep_for(10ms);
  }
  sender.request_stop(false);
  sender.join();
  capture->request_stop();
  capture->join();
  return ended;
}

std::optional<Error> Engine::run_receiving(ReceiverPortOwner& port) {
  queue::LcrQueue queue({.slots = options_.queue_slots, .memory_bytes = options_.queue_bytes, .consumers = 1});
  apply::Apply apply({.stream_id = kStream,
                      .destination_conninfo = "host=destination",
                      .queue = &queue,
                      .consumer = 0,
                      .parameters = options_.apply,
                      .spill_directory = options_.directory,
                      .catch_up = {},
                      .clock = &system_clock()});
  const auto from = apply.start();
  if (!from) return from.error();
  propagation::Receiver receiver(
      {.stream_id = kStream,
       .engine = options_.name,
       .peer_engine = "sender",
       .queue = &queue,
       .durable = [&apply] { return base::Lsn{apply.confirmed_lsn().load(std::memory_order_acquire)}; },
       .clock = &system_clock()});
  if (auto started = receiver.start(port.get()); !started) return started.error();
  auto ended = watch(
      [&]() -> std::optional<Error> {
        apply.set_parameters(options_.apply);
        if (auto error = apply.status().error) return error;
        return receiver.status().error;
      },
      [&] { return fmt::format("{} || {}", receiver.status().state, states_of(apply.sample())); });
  if (!ended) {
    receiver.request_stop();
    receiver.join();
    apply.request_stop(true);
    while (apply.status().running) std::this_thread::sleep_for(10ms);
    ended = apply.status().error;
  }
  apply.request_stop(false);
  apply.join();
  receiver.request_stop();
  receiver.join();
  return ended;
}

}  // namespace thalweg::simulation
