#include "apply/applier/applier.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace thalweg::apply {

using telemetry::Activity;
using telemetry::ActivityScope;
using Before = CoordinatorSignals::Before;

namespace {

constexpr pollfd kNothing{.fd = -1, .events = 0, .revents = 0};

}  // namespace

Applier::Applier(SharedState& shared, metadata::MetadataCache& cache, int number)
    : shared_(shared),
      parts_(shared, cache, number),
      round_trips_(parts_, [this](Lane& lane) { finish(lane); }),
      alone_(parts_) {
  thread_ = std::thread([this] { run(); });
}

Applier::~Applier() { join(); }

void Applier::join() {
  if (!thread_.joinable()) return;
  ring();
  thread_.join();
}

void Applier::retire() {
  retiring_.store(true, std::memory_order_release);
  ring();
}

void Applier::revive() {
  join();
  retiring_.store(false, std::memory_order_relaxed);
  parts_.state.set("INITIALIZING");
  active_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { run(); });
}

void Applier::assign(Group* group, bool beside) {
  group->run.error.reset();
  group->run.retry_in.reset();
  parts_.signals.before.store(beside ? Before::open : Before::committed, std::memory_order_relaxed);
  parts_.signals.rollback_requested.store(false, std::memory_order_relaxed);
  assigned_.push(group);
  bool left = false;  // something that may have to wait
  int looks = 0;
  baton_.work([&] {
    left = !attend(By::assigner) || (parts_.session && parts_.session->unsent());
    show_wait();
    ++looks;
  });
  // More than one look: its thread came, and while it could not have the baton it did not listen to the server.
  if (left || looks > 1) ring();
}

void Applier::tell_settled(bool committed) {
  parts_.signals.before.store(committed ? Before::committed : Before::failed, std::memory_order_release);
  ring();
}

Group* Applier::take_finished() {
  Group** const first = finished_.peek();
  if (first == nullptr) return nullptr;
  Group* const group = *first;
  finished_.pop();
  return group;
}

void Applier::request_rollback() {
  parts_.signals.rollback_requested.store(true, std::memory_order_relaxed);
  ring();
}

void Applier::set_dependency_wait(bool waits) {
  if (dependency_wait_.exchange(waits, std::memory_order_relaxed) != waits) ring();
}

base::Result<void> Applier::connect() {
  const auto options = shared_.connect_options(fmt::format("applier {}", parts_.number));
  THALWEG_ASSIGN(auto session, DestinationSession::open(shared_.destination_conninfo, options));
  parts_.session.emplace(std::move(session));
  pg::Connection& connection = parts_.session->connection();
  THALWEG_ASSIGN(const bool below_sql, has_data_layer(connection));
  parts_.has_data_layer.store(below_sql, std::memory_order_relaxed);
  backend_pid_.store(connection.backend_pid(), std::memory_order_relaxed);
  ApplierCounts& counts = parts_.counts;
  for (Lane& lane : parts_.lanes) {
    lane.executor.emplace(*parts_.session, lane.tables, counts.sets, counts.data_layer_calls, counts.merged_updates,
                          shared_.statement_handlers);
    THALWEG_TRY(lane.progress.create_row(connection));
  }
  return {};
}

// Has the baton whenever it does not sleep, and keeps it at its end: revive() begins with it again.
void Applier::run() {
  {
    const ActivityScope network(parts_.time, Activity::network);
    if (auto connected = connect(); !connected) shared_.error.set(connected.error());
  }
  while (true) {
    while (!attend(By::agent)) work_alone();
    const bool retiring = retiring_.load(std::memory_order_acquire);
    if ((shared_.ending() || retiring) && round_trips_.any_sent()) {
      round_trips_.await_answer();
      continue;
    }
    // A coordinator that has not yet seen the end may still assign a group, and waits for it to come back.
    if ((retiring || shared_.commits_ended.load(std::memory_order_acquire)) && assigned_.empty()) break;
    show_wait();
    const pollfd answers = parts_.session ? parts_.session->polled() : kNothing;
    round_trips_.set_listens(answers.fd >= 0);
    bool heard = false;
    pollfd listened = answers;
    baton_.sleep([&] {
      heard = parts_.signals.wake.wait(shared_.policy.idle_wait, listened) || heard;
      listened = kNothing;  // whoever has the baton listens to the server
    });
    round_trips_.set_heard(heard);
  }
  parts_.state.set("IDLE");
  parts_.time.enter(Activity::idle);
  for (Lane& lane : parts_.lanes) {
    lane.executor.reset();
    lane.tables.disconnect();
  }
  parts_.session.reset();
  backend_pid_.store(0, std::memory_order_relaxed);
  if (retiring_.load(std::memory_order_acquire)) active_.store(false, std::memory_order_release);
  shared_.coordinator_bell.ring();
}

// Takes the answers that have come, and sends what may go behind what is on its way. False: there is something else to
// do, and, by its thread, nothing is on its way.
bool Applier::attend(By by) {
  round_trips_.take_answers();
  while (!round_trips_.any_failed() && !assigned_.empty()) {
    Lane* const lane = round_trips_.free_lane();
    Group& next = **assigned_.peek();
    if (lane == nullptr || !round_trips_.may_send(next)) return round_trips_.any_sent();
    if (by == By::assigner && !round_trips_.takes_no_time(*lane, next)) return false;
    assigned_.pop();
    round_trips_.send(*lane, next);
  }
  return !round_trips_.any_failed() || round_trips_.any_sent();
}

void Applier::show_wait() {
  const bool sent = round_trips_.any_sent();
  const bool waits = dependency_wait_.load(std::memory_order_relaxed);
  parts_.state.set(sent ? "EXECUTE TRANSACTION" : waits ? "WAIT DEPENDENCY" : "IDLE");
  parts_.time.enter(sent ? Activity::execute : waits ? Activity::dependency : Activity::idle);
}

// A group that did not commit, or does not go in one round trip.
void Applier::work_alone() {
  parts_.state.set("EXECUTE TRANSACTION");
  parts_.time.enter(Activity::busy);
  base::Result<void> done;
  Lane* lane = parts_.lanes.begin();
  if (round_trips_.any_failed()) {
    auto failed = round_trips_.next_failed();
    lane = failed.lane;
    done = failed.why ? alone_.take_refusal(*lane, *failed.why) : std::unexpected(std::move(failed.why).error());
  } else {
    lane->group = *assigned_.peek();
    assigned_.pop();
    done = alone_.execute(*lane->group);
  }
  if (!done) {
    lane->group->run.error = done.error();
    const auto& session = parts_.session;
    if (session && !session->broken() && !alone_.roll_back()) shared_.error.set(done.error());
  }
  finish(*lane);
}

void Applier::finish(Lane& lane) {
  if (lane.executor) lane.executor->reset();
  lane.tables.release();
  Group* const group = std::exchange(lane.group, nullptr);
  if (!group->run.error) parts_.counts.groups.add();
  finished_.push(group);
  shared_.tell_coordinator();
}

telemetry::ComponentSample Applier::sample() const {
  return {.type = "APPLY",
          .name = "apply",
          .sub_component = "APPLY SERVER",
          .server = parts_.number,
          .state = parts_.state.get(),
          .time_ns = parts_.time.sample(),
          .counters = parts_.counts.counters(),
          .gauges = parts_.counts.gauges()};
}

}  // namespace thalweg::apply
