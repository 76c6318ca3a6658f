#include "simulation/engine.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "daemon/lifecycle.h"
#include "daemon/peering.h"
#include "daemon/sessions.h"
#include "simulation/operator.h"
#include "simulation/relational.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

using base::Error;
using base::ErrorCode;
using namespace std::chrono_literals;

namespace {

constexpr auto kPauseFirst = 100ms;  // after a failure, doubling
constexpr auto kPauseLast = 2000ms;

const base::Clock& system_clock() {
  static const base::SystemClock clock;
  return clock;
}

bool finds_no_room(const control::StreamStats& stats) {
  return std::ranges::any_of(stats.components, [](const telemetry::ComponentSample& component) {
    return component.type == "PROPAGATION RECEIVER" && component.state.starts_with("PAUSED FOR FLOW CONTROL");
  });
}

}  // namespace

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

control::StreamDefinition definition_of(const EngineOptions& options) {
  control::StreamDefinition stream;
  stream.id = "simulated";
  stream.name = stream.id;
  stream.status = control::DesiredStatus::enabled;
  stream.source = {.name = "source", .conninfo = "host=source"};
  if (!options.receive_from.empty()) stream.receive_from = control::ReceiveFrom{.engine = options.receive_from};
  stream.parameters = options.parameters;
  for (const TableShape& shape : shapes()) stream.tables.push_back({"public", shape.name});
  stream.rules = options.rules;
  stream.transformations = options.transformations;
  stream.names = options.names;
  for (const EngineOptions::Destination& to : options.destinations) {
    control::DestinationDefinition destination;
    destination.id = to.name;
    destination.name = to.name;
    destination.status = to.is_paused ? control::DesiredStatus::disabled : control::DesiredStatus::enabled;
    destination.backlog = options.destinations.size() > 1;
    if (to.engine.empty()) {
      destination.conninfo = "host=" + to.name;
    } else {
      destination.send_to = control::SendTo{.engine = to.engine, .host = "127.0.0.1", .port = to.port};
    }
    destination.parameters = stream.parameters;
    stream.destinations.push_back(std::move(destination));
  }
  return stream;
}

Engine::Engine(Scheduler& scheduler, EngineOptions options) : scheduler_(scheduler), options_(std::move(options)) {
  auto opened = daemon::Identity::open(options_.directory / "identity");
  if (opened) {
    identity_ = *std::move(opened);
  } else {
    fail("{} has no folder: {}", options_.name, opened.error().message);
  }
}

Engine::~Engine() = default;

void Engine::start() {
  processes_.push_back(std::make_unique<Process>(Process{.name = options_.name}));
  process_ = processes_.back().get();
  scheduler_.spawn(*process_, [this] { run(); });
}

void Engine::crash() {
  if (process_ == nullptr) return;
  scheduler_.kill(*process_);
  process_ = nullptr;
  is_held_back_ = false;
}

void Engine::run() {
  std::filesystem::create_directories(options_.directory);
  daemon::Peering peering(*identity_, {.port = options_.port});
  Operator person(scheduler_, options_);
  auto pause = kPauseFirst;
  daemon::Lifecycle life(daemon::State::initializing);  // as daemon::Stream has it
  bool is_in_trouble = false;
  const auto note_trouble = [&](bool trouble) {
    if (trouble) life.enter(daemon::State::retrying);
    if (!trouble && is_in_trouble) life.enter(daemon::State::catching_up);
    is_in_trouble = trouble;
  };
  const auto judge = [this](const Error& error) {
    if (!is_expected(error.code)) {
      fail("{} fails with {}: {}", options_.name, base::name_of(error.code), error.message);
    }
  };
  while (true) {
    restart_ = false;
    daemon::Sessions sessions({.definition = definition_of(options_),
                               .spill_directory = options_.directory,
                               .clock = &system_clock(),
                               .peering = &peering,
                               .stop = &restart_,
                               .set_state = [&](daemon::State state) { life.enter(state); },
                               .on_capture =
                                   [&] {
                                     pause = kPauseFirst;
                                     is_in_trouble = false;
                                   },
                               .on_look = [&] { is_held_back_ = finds_no_room(person.look()); },
                               .note_trouble =
                                   [&](const std::optional<Error>& trouble) {
                                     if (trouble) judge(*trouble);
                                     note_trouble(trouble.has_value());
                                   },
                               .backlog_segment_bytes = options_.backlog_segment_bytes});
    person.come(sessions);
    const auto ran = sessions.run();
    person.leave();
    is_held_back_ = false;
    if (ran) {
      trace("restarts in order");
      is_in_trouble = false;
      life.enter(daemon::State::initializing);
      continue;
    }
    trace("sessions end: {}: {}", base::name_of(ran.error().code), ran.error().message);
    judge(ran.error());
    note_trouble(true);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kPauseLast);
  }
}

}  // namespace thalweg::simulation
