#include "simulation/engine.h"

#include <chrono>
#include <thread>

#include "simulation/pipeline.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

using base::Error;
using base::ErrorCode;
using namespace std::chrono_literals;

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
  propagation::ReceiverPort port({.engine = options_.name,
                                  .address = "127.0.0.1",
                                  .port = kReceiverPort,
                                  .security = {.tls = {}, .plain_on_loopback = true}});
  if (options_.part == Part::receiving) {
    if (const auto listens = port.start(); !listens)
      fail("{} cannot listen: {}", options_.name, listens.error().message);
  }
  if (options_.part == Part::fanning_out) return run_fan_out();
  auto pause = 100ms;
  while (true) {
    std::optional<Error> ended;
    {
      Pipeline pipeline(options_, &port);
      ended = run(pipeline);
    }
    if (!ended) {
      pause = 100ms;
      continue;
    }
    trace("pipeline ends: {}: {}", base::name_of(ended->code), ended->message);
    if (!is_expected(ended->code)) {
      fail("{} fails with {}: {}", options_.name, base::name_of(ended->code), ended->message);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 2000ms);
  }
}

std::optional<Error> Engine::run(Pipeline& pipeline) {
  if (const auto started = pipeline.start(); !started) return started.error();
  restart_ = false;
  std::string shown;
  while (!restart_) {
    if (auto failed = pipeline.failure()) return failed;
    if (std::string now = pipeline.states(); now != shown) trace("{}", shown = std::move(now));
    pipeline.set_parameters(options_.apply);
    std::this_thread::sleep_for(50ms);
  }
  trace("restarts in order");
  pipeline.drain();
  return pipeline.failure();
}

}  // namespace thalweg::simulation
