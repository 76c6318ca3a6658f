#include "daemon/sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "daemon/destination_errors.h"
#include "simulation/engine.h"
#include "simulation/verdict.h"

// A stream with several destinations in an engine of the world: the daemon's own, made anew after every failure as
// daemon::Stream does, and an operator who tries again what gave up.

namespace thalweg::simulation {

using namespace std::chrono_literals;

namespace {

constexpr uint32_t kRetriesOnceInLooks = 40;  // of 50 ms
constexpr uint32_t kExecutesOnceInLooks = 10;

const base::Clock& system_clock() {
  static const base::SystemClock clock;
  return clock;
}

control::StreamParameters parameters_of(const EngineOptions& options) {
  constexpr int64_t kMiB = 1 << 20;
  control::StreamParameters out;
  out.parallelism = options.apply.parallelism;
  out.commit_serialization =
      options.apply.commit_serialization == apply::CommitSerialization::full ? "full" : "dependent_transactions";
  out.disable_on_error = options.apply.disable_on_error;
  out.group_size = static_cast<int64_t>(options.apply.group_size);
  out.txn_lcr_spill_threshold = static_cast<int64_t>(options.apply.txn_lcr_spill_threshold);
  out.txn_age_spill_threshold = options.apply.txn_age_spill_threshold.count();
  out.memory_budget_mb = 1 + static_cast<int64_t>(options.apply.memory_budget_bytes) / kMiB;
  out.queue_size = static_cast<int64_t>(options.queue_slots);
  out.queue_memory_mb = 1;
  return out;
}

control::StreamDefinition definition_of(const EngineOptions& options) {
  control::StreamDefinition stream;
  stream.id = "simulated";
  stream.name = stream.id;
  stream.status = control::DesiredStatus::enabled;
  stream.source = {.name = "source", .conninfo = "host=source"};
  stream.parameters = parameters_of(options);
  for (const EngineOptions::Destination& to : options.destinations) {
    control::DestinationDefinition one;
    one.id = to.name;
    one.name = to.name;
    one.status = control::DesiredStatus::enabled;
    one.backlog = true;
    if (to.engine.empty()) {
      one.conninfo = "host=" + to.name;
    } else {
      one.send_to = control::SendTo{.engine = to.engine, .host = "127.0.0.1", .port = to.port};
    }
    one.parameters = stream.parameters;
    stream.destinations.push_back(std::move(one));
  }
  return stream;
}

// What the destinations show, and what an operator does about it.
class Operator {
 public:
  Operator(Scheduler& scheduler, const EngineOptions& options) : scheduler_(scheduler), options_(options) {}

  // Before the sessions go.
  void leave() {
    if (at_queue_.joinable()) at_queue_.join();
  }

  void look(daemon::Sessions& sessions) {
    std::string now;
    for (const control::DestinationStatus& one : sessions.destinations()) {
      const auto code = one.error ? std::optional(one.error->error.code) : std::nullopt;
      now += fmt::format(" {} {} {} {} {}", one.id, one.status, one.phase, one.backlog.state,
                         code ? base::name_of(*code) : "");
      // Nothing damages files here: what a loss of power left was seen to when it was written.
      if (code && (!is_expected(*code) || *code == base::ErrorCode::corrupt_frame)) {
        fail("destination {} fails with {}: {}", one.id, base::name_of(*code), one.error->error.message);
      }
      if (one.status == "ABORTED" && scheduler_.chance(kRetriesOnceInLooks)) sessions.find(one.id)->retry();
    }
    if (now != shown_) trace("{}", now);
    shown_ = now;
    if (!options_.apply.disable_on_error && !is_at_queue_ && scheduler_.chance(kExecutesOnceInLooks)) {
      const EngineOptions::Destination& one = options_.destinations[scheduler_.random(options_.destinations.size())];
      leave();
      is_at_queue_ = true;
      at_queue_ = std::thread([this, &at = *sessions.find(one.name)] {
        execute_parked(at);
        is_at_queue_ = false;
      });
    }
    if (options_.apply.parallelism != parallelism_) {
      parallelism_ = options_.apply.parallelism;
      sessions.set_parameters(definition_of(options_));
    }
  }

 private:
  void execute_parked(daemon::Destination& at) {
    const control::StreamDefinition whole = definition_of(options_);
    const auto one = std::ranges::find(whole.destinations, at.id(), &control::DestinationDefinition::id);
    const control::Delivery definition = control::delivery_to(whole, *one);
    const std::atomic<bool> never{false};
    const auto parked = daemon::parked_errors(definition, {}, never);
    if (!parked && !is_expected_of_operator(parked.error().code)) {
      fail("the error queue of {}: {}", at.id(), parked.error().message);
    }
    if (!parked || parked->errors.empty()) return;
    const int64_t id = pick_parked(scheduler_, parked->errors);
    const auto executed = daemon::execute_parked_error(definition, id);
    at.note_errors_changed();
    trace("{} are parked at {}; {}: {}", parked->errors.size(), at.id(), id,
          executed ? "executed" : executed.error().message);
    if (!executed && !is_expected_of_operator(executed.error().code)) {
      fail("transaction {} of the error queue of {} fails with {}: {}", id, at.id(),
           base::name_of(executed.error().code), executed.error().message);
    }
  }

  Scheduler& scheduler_;
  const EngineOptions& options_;
  std::thread at_queue_;
  bool is_at_queue_ = false;
  std::string shown_;
  int parallelism_ = 0;
};

}  // namespace

void Engine::run_fan_out() {
  auto pause = 100ms;
  Operator person(scheduler_, options_);
  while (true) {
    restart_ = false;
    daemon::Sessions* running = nullptr;
    daemon::Sessions sessions({.definition = definition_of(options_),
                               .spill_directory = options_.directory,
                               .clock = &system_clock(),
                               .peering = peering_.get(),
                               .stop = &restart_,
                               .set_state = [](daemon::State) {},
                               .on_capture = [&] { pause = 100ms; },
                               .on_look = [&] { person.look(*running); },
                               .backlog_segment_bytes = options_.backlog_segment_bytes});
    running = &sessions;
    const auto ran = sessions.run();
    person.leave();
    if (ran) {
      trace("restarts in order");
      continue;
    }
    const base::Error& error = ran.error();
    trace("fan-out ends: {}: {}", base::name_of(error.code), error.message);
    if (!is_expected(error.code)) {
      fail("{} fails with {}: {}", options_.name, base::name_of(error.code), error.message);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 2000ms);
  }
}

}  // namespace thalweg::simulation
