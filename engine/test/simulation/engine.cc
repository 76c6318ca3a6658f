#include "simulation/engine.h"

#include <chrono>
#include <thread>

#include "simulation/pipeline.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

using base::Error;
using base::ErrorCode;
using namespace std::chrono_literals;

namespace {
constexpr uint32_t kExecutesOnceInLooks = 20;  // of 50 ms
}

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

bool is_expected_of_operator(ErrorCode code) {
  switch (code) {
    case ErrorCode::parked_behind:
    case ErrorCode::apply_failed:
    case ErrorCode::apply_conflict:
    case ErrorCode::unknown_error_transaction:  // somebody was faster, or the last answer was lost
      return true;
    default:
      return is_expected(code);
  }
}

Engine::Engine(Scheduler& scheduler, EngineOptions options) : scheduler_(scheduler), options_(std::move(options)) {
  if (options_.part != Part::fanning_out) return;
  auto opened = daemon::Identity::open(options_.directory / "identity");
  if (!opened) fail("{} has no folder: {}", options_.name, opened.error().message);
  identity_ = *std::move(opened);
  peering_ = std::make_unique<daemon::Peering>(*identity_, daemon::Peering::Address{});
}

Engine::~Engine() = default;

bool Engine::is_held_back() const {
  return pipeline_ != nullptr && pipeline_->states().find("PAUSED FOR FLOW CONTROL") == 0;
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
  pipeline_ = nullptr;
}

void Engine::run() {
  std::filesystem::create_directories(options_.directory);
  propagation::ReceiverPort port({.engine = options_.name,
                                  .address = "127.0.0.1",
                                  .port = options_.port,
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
      pipeline_ = &pipeline;
      ended = run(pipeline);
      pipeline_ = nullptr;
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
    if (!options_.apply.disable_on_error && scheduler_.chance(kExecutesOnceInLooks)) execute_parked(pipeline);
    std::this_thread::sleep_for(50ms);
  }
  trace("restarts in order");
  pipeline.drain();
  return pipeline.failure();
}

void Engine::execute_parked(Pipeline& pipeline) {
  const auto parked = pipeline.parked();
  if (!parked && !is_expected(parked.error().code)) fail("the error queue: {}", parked.error().message);
  if (!parked || parked->empty()) return;
  const int64_t id = pick_parked(scheduler_, *parked);
  const auto executed = pipeline.execute_parked(id);
  trace("{} are parked; {}: {}", parked->size(), id, executed ? "executed" : executed.error().message);
  if (!executed && !is_expected_of_operator(executed.error().code)) {
    fail("transaction {} of the error queue fails with {}: {}", id, base::name_of(executed.error().code),
         executed.error().message);
  }
}

}  // namespace thalweg::simulation
