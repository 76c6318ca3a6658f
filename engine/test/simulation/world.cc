#include "simulation/world.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "simulation/destination.h"
#include "simulation/engine.h"
#include "simulation/network.h"
#include "simulation/scheduler.h"
#include "simulation/source.h"
#include "simulation/storage.h"
#include "simulation/system_clock.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr Time kFaultPauseMax = 2 * kSecond;
constexpr Time kOutageMax = 3 * kSecond;
constexpr Time kConvergenceMax = 600 * kSecond;  // of simulated time, once no more faults come
constexpr Time kStandsStill = 5 * kSecond;       // before its source writes what the others have to get rid of
constexpr Time kSyncsFail = 20 * kSecond;        // while its backlog is to become durable
constexpr Time kBehindMax = 60 * kSecond;        // that a destination which stands still may hold the source's WAL
constexpr Time kQueueFull = 2 * kSecond;         // after which a queue that nobody takes from is full, mostly
constexpr size_t kCaughtUpMax = 20;              // transactions that one which was away gets before it stands still
constexpr size_t kTrapCallsMax = 40;             // of write and fsync, until the trap shuts
constexpr const char* kNames[] = {"north", "east", "west"};
constexpr const char* kCapturingEngine = "sender";

struct Plan {
  size_t destinations = 1;
  bool applied_elsewhere[std::size(kNames)] = {};  // at an engine of its own
  Order order = Order::dependent;
  bool has_data_layer = false;
  bool pauses = false;  // destinations, in turn
  size_t faults = 0;
  bool storage_faults = false;
  SourceOptions source;
  EngineOptions engine;
  std::optional<ConflictRules> conflicts;  // others write at the destinations
  size_t others_most = 0;                  // transactions of theirs
  bool refuses = false;                    // rows do not please them now and then
};

// Most tables get some. Conditions read more than the key only where whole old rows come. A table whose updates may
// leave a value out always sends them: an update that becomes an insert takes the value from there.
void add_rules(Scheduler& scheduler, Plan& plan) {
  for (size_t table = 0; table < shapes().size(); ++table) {
    const TableShape& shape = shapes()[table];
    const bool is_full = shape.key < 0 || shape.toasted >= 0 || scheduler.chance(2);
    plan.source.full_identity[table] = is_full;
    if (scheduler.chance(4)) continue;
    const TableRules rules = make_rules(scheduler, shape, is_full, plan.source.keys);
    plan.source.rules[table] = rules;
    plan.engine.rules[{"public", shape.name}] = rules.definition();
  }
}

// Some tables have other names at the destinations, or columns of theirs; some columns are masked, or do not come.
void add_transformations(Scheduler& scheduler, Plan& plan) {
  std::vector<TableShape> there = shapes();
  for (size_t table = 0; table < shapes().size(); ++table) {
    if (scheduler.chance(4)) continue;
    const TableTransformation made = make_transformation(scheduler, shapes()[table]);
    const control::TableRef name{"public", shapes()[table].name};
    there[table] = made.shape(shapes()[table]);
    plan.source.transformations[table] = made;
    if (!made.steps.empty()) plan.engine.transformations[name] = made.steps;
    if (there[table].name != name.table) plan.engine.names[name] = {"public", there[table].name};
  }
  set_shapes_there(std::move(there));
}

// Somebody else writes at the destinations.
void add_conflicts(Scheduler& scheduler, Plan& plan) {
  if (plan.engine.rules.empty()) {
    for (size_t table = 0; table < shapes().size(); ++table) plan.source.full_identity[table] = scheduler.chance(2);
  }
  plan.conflicts = make_conflict_rules(scheduler, plan.source.full_identity, plan.source.transformations);
  plan.others_most = 1 + scheduler.random(40);
  plan.refuses = scheduler.chance(2);
  plan.conflicts->write(plan.engine.parameters);
}

Plan make_plan(Scheduler& scheduler) {
  Plan plan;
  const auto between = [&](size_t least, size_t most) { return least + scheduler.random(most - least + 1); };
  if (scheduler.chance(3)) {
    plan.destinations = between(2, std::size(kNames));
    if (scheduler.chance(2)) {
      for (bool& elsewhere : plan.applied_elsewhere) elsewhere = !scheduler.chance(3);
    }
  } else {
    plan.applied_elsewhere[0] = scheduler.chance(2);
  }
  plan.order = scheduler.chance(3) ? Order::full : Order::dependent;
  plan.has_data_layer = scheduler.chance(2);
  plan.pauses = plan.destinations > 1 && !scheduler.chance(3);
  plan.faults = scheduler.chance(8) ? 0 : between(1, 10);
  plan.storage_faults = scheduler.chance(2);
  plan.source.transactions = between(5, 60);
  plan.source.keys = static_cast<int64_t>(between(4, 40));
  plan.source.hot_once_in = static_cast<uint32_t>(between(1, 8));
  plan.source.pause_max = static_cast<Time>(between(1, 60)) * kMillisecond;
  plan.source.decoding_buffered_max = between(4, 60);
  const bool has_long_texts = scheduler.chance(15);  // more than queues and budgets hold
  if (has_long_texts) {
    plan.source.transactions = between(60, 120);
    const bool has_few = scheduler.chance(2);
    plan.source.long_once_in = has_few ? 12 : 2;
    plan.source.long_bytes_max = has_few ? 400'000 : 30'000;
  }
  plan.source.batch_bytes = scheduler.chance(4) ? 0 : between(1, 4000);
  plan.source.batch_version_max = scheduler.chance(8) ? 1 : scheduler.chance(4) ? 2 : 4;
  plan.source.forgets_once_in = scheduler.chance(2) ? static_cast<uint32_t>(between(1, 3)) : 0;
  auto& parameters = plan.engine.parameters;
  parameters.heartbeat_interval = scheduler.chance(2) ? 0 : static_cast<int64_t>(between(1, 3));
  parameters.parallelism = static_cast<int64_t>(between(1, 6));
  parameters.commit_serialization = plan.order == Order::full ? control::CommitSerialization::full
                                                              : control::CommitSerialization::dependent_transactions;
  parameters.disable_on_error = !scheduler.chance(3);
  parameters.group_size = scheduler.chance(3) ? 1 : static_cast<int64_t>(between(2, 60));
  parameters.txn_lcr_spill_threshold = scheduler.chance(2) ? 10'000 : static_cast<int64_t>(between(2, 30));
  parameters.txn_age_spill_threshold = scheduler.chance(2) ? 900 : static_cast<int64_t>(between(0, 2));
  parameters.memory_budget_mb = has_long_texts || scheduler.chance(3) ? 1 : 16;
  parameters.queue_size = static_cast<int64_t>(between(8, has_long_texts ? 1000 : 300));
  parameters.queue_memory_mb = 1;
  parameters.propagation_compression = static_cast<control::PropagationCompression>(scheduler.random(3));
  parameters.propagation_window_mb = 4;
  plan.engine.backlog_segment_bytes = uint64_t{256} << scheduler.random(7);
  if (scheduler.chance(3)) add_rules(scheduler, plan);
  if (scheduler.chance(3)) add_transformations(scheduler, plan);
  if (scheduler.chance(3)) add_conflicts(scheduler, plan);
  return plan;
}

class World {
 public:
  World(uint64_t seed, const std::filesystem::path& directory)
      : scheduler_(seed),
        network_(scheduler_),
        storage_(scheduler_),
        plan_(make_plan(scheduler_)),
        source_(scheduler_, network_, plan_.source) {
    network_.make_current();
    storage_.make_current();
    for (size_t i = 0; i < plan_.destinations; ++i) {
      destinations_.push_back(std::make_unique<Destination>(
          scheduler_, network_, fans_out() ? kNames[i] : "destination", source_.history(), plan_.order,
          plan_.has_data_layer, plan_.conflicts ? &*plan_.conflicts : nullptr));
    }
    const auto add = [&](const std::string& name, EngineOptions options) {
      options.name = name;
      options.directory = directory / name;
      engines_.push_back(std::make_unique<Engine>(scheduler_, options));
    };
    EngineOptions first = plan_.engine;
    for (size_t i = 0; i < plan_.destinations; ++i) {
      EngineOptions::Destination to{.name = destinations_[i]->name(), .engine = {}};
      if (plan_.applied_elsewhere[i]) {
        EngineOptions receiving = plan_.engine;
        receiving.receive_from = kCapturingEngine;
        receiving.port = static_cast<uint16_t>(kReceiverPort + i);
        receiving.destinations = {to};
        to.engine = fmt::format("{}-receiver", to.name);
        to.port = receiving.port;
        add(to.engine, receiving);
      }
      first.destinations.push_back(to);
    }
    add(kCapturingEngine, first);
  }

  WorldResult run() {
    scheduler_.spawn(nature_, [this] { live(); });
    scheduler_.run([this] { return over_ || Verdict::get().failed(); });
    if (!over_ && !Verdict::get().failed()) fail("nothing can happen any more");
    uint64_t conflicts = 0;
    for (const auto& destination : destinations_) conflicts += destination->committed().conflicts;
    return {.ok = !Verdict::get().failed(),
            .failure = Verdict::get().reason(),
            .steps = scheduler_.steps(),
            .simulated_seconds = static_cast<double>(scheduler_.now()) / kSecond,
            .fingerprint = Verdict::get().fingerprint(),
            .transactions = source_.history().transactions().size(),
            .faults = faults_,
            .migrations = source_.migrations(),
            .conflicts = conflicts};
  }

 private:
  void live() {
    trace("{} engine(s), {} destination(s), {} order, data layer {}, parallelism {}, group {}, {} faults",
          engines_.size(), plan_.destinations, plan_.order == Order::full ? "full" : "dependent", plan_.has_data_layer,
          plan_.engine.parameters.parallelism, plan_.engine.parameters.group_size, plan_.faults);
    for (size_t table = 0; table < shapes().size(); ++table) {
      const auto& rules = plan_.source.rules[table];
      if (rules) trace("rules of {}: {}", shapes()[table].name, describe(*rules));
      const auto& transformation = plan_.source.transformations[table];
      if (transformation) trace("{} becomes {}", shapes()[table].name, describe(*transformation));
    }
    if (plan_.conflicts) trace("conflicts: {}", describe(*plan_.conflicts));
    if (!fans_out()) source_.check_feedback_against(*destinations_.front());
    source_.start();
    for (const auto& destination : destinations_) {
      destination->register_stream(base::Lsn{source_.slot_start()});
      destination->start();
    }
    for (const auto& engine : engines_) engine->start();
    source_.run_clients(nature_);
    if (plan_.conflicts) scheduler_.spawn(nature_, [this] { write_as_others(); });
    const bool may_refuse = plan_.conflicts ? plan_.refuses : !plan_.engine.parameters.disable_on_error;
    if (may_refuse) scheduler_.spawn(nature_, [this] { refuse_rows(); });
    if (plan_.pauses) scheduler_.spawn(nature_, [this] { pause_destinations(); });
    if (fans_out() && plan_.faults == 0) stand_still();
    for (size_t i = 0; i < plan_.faults; ++i) {
      pause(kFaultPauseMax);
      cause_fault();
    }
    heal();
    while (!source_.clients_done()) pause(kSecond);
    trace("no more faults, no more transactions");
    const Time deadline = scheduler_.now() + kConvergenceMax;
    while (!is_converged()) {
      if (scheduler_.now() > deadline) {
        for (const auto& destination : destinations_) {
          fail("{} has {} transactions of {}, and gets no more; confirmed is {:X}", destination->name(),
               destination->committed().expected.prefix(), source_.history().transactions().size(),
               source_.confirmed());
        }
      }
      pause(kSecond);
    }
    over_ = true;
  }

  bool is_converged() const {
    const size_t all = source_.history().transactions().size();
    for (const auto& destination : destinations_) {
      const Expected& expected = destination->durable().expected;
      // Parked transactions know no handlers: they stay in the error queue where others' rows are in the way.
      const bool is_stuck = plan_.conflicts && expected.kept_prefix() == all && expected.is_stuck(source_.history());
      if (expected.prefix() < all && !is_stuck) return false;
      // Where others write, every commit was compared with what has to be there.
      if (!plan_.conflicts && destination->durable().data != source_.history().final_state()) {
        fail("{} is not what the source is:{}", destination->name(),
             describe_difference(destination->durable().data, source_.history().final_state()));
      }
    }
    // The source may forget its WAL in the end.
    return source_.confirmed() >= (all == 0 ? 0 : source_.history().transactions().back().commit_lsn);
  }

  bool fans_out() const { return plan_.destinations > 1; }
  Destination& any_destination() { return *destinations_[scheduler_.random(destinations_.size())]; }

  // In the midst of the stream's work, and between its transactions.
  void write_as_others() {
    const Time most = static_cast<Time>(1 + scheduler_.random(1000)) * kMillisecond;
    for (size_t times = plan_.others_most; times > 0 && !healed_; --times) {
      pause(most);
      Destination& destination = any_destination();
      if (destination.is_up()) destination.write_as_other(1 + scheduler_.random(4), plan_.source.keys);
    }
  }

  // Some rows do not please a destination for a while: their transactions are parked, or they are left out.
  void refuse_rows() {
    for (size_t times = 1 + scheduler_.random(3); times > 0 && !healed_; --times) {
      pause(kFaultPauseMax);
      Destination& destination = any_destination();
      if (healed_) return;
      trace("{} refuses rows", destination.name());
      destination.refuse_rows(2 + static_cast<uint32_t>(scheduler_.random(10)));
      pause(kOutageMax);
      destination.refuse_rows(0);
    }
  }

  // The others and the capture go on.
  void pause_destinations() {
    Engine& capturing = *engines_.back();
    while (!healed_) {
      pause(kFaultPauseMax);
      const size_t which = scheduler_.random(destinations_.size());
      // A pause restarts it, and with it the time after which it is cut off.
      if (destinations_[which].get() == still_) continue;
      trace("{} is paused", destinations_[which]->name());
      capturing.set_paused(which, true);
      pause(kOutageMax);
      trace("{} is resumed", destinations_[which]->name());
      capturing.set_paused(which, false);
    }
  }

  // One of several takes nothing more: in the end its backlog is on the engine's disk, and the source may forget.
  void stand_still() {
    pause(2 * kSecond);
    Destination& still = any_destination();
    trace("{} stands still", still.name());
    still_ = &still;
    still.lock_tables();
    scheduler_.sleep_until(scheduler_.now() + kStandsStill);
    const uint64_t due = source_.wal_end();
    const Time deadline = scheduler_.now() + kBehindMax;
    if (scheduler_.chance(2)) {
      trace("fault: fsyncs fail until it has been cut off");
      storage_.sync_fails = true;
      scheduler_.sleep_until(scheduler_.now() + kSyncsFail);
      storage_.sync_fails = false;
    }
    while (source_.confirmed() < due && scheduler_.now() < deadline) pause(kSecond);
    if (source_.confirmed() < due) fail("{} stands still, and the source keeps its WAL for it", still.name());
    still.unlock_tables();
    still_ = nullptr;
  }

  void pause(Time most) {
    scheduler_.sleep_until(scheduler_.now() + static_cast<Time>(scheduler_.random(static_cast<uint64_t>(most))));
  }

  // Runs `undo` some time later, if heal() did not before.
  void later(std::function<void()> undo) {
    const Time when = scheduler_.now() + static_cast<Time>(scheduler_.random(static_cast<uint64_t>(kOutageMax)));
    scheduler_.spawn(nature_, [this, when, undo = std::move(undo)] {
      scheduler_.sleep_until(when);
      undo();
    });
  }

  void cause_fault() {
    ++faults_;
    Engine& engine = *engines_[scheduler_.random(engines_.size())];
    Destination& destination = any_destination();
    switch (scheduler_.random(plan_.storage_faults ? 15 : 11)) {
      case 0:
        return crash_engine(engine);
      case 1:
        if (!fans_out() || !engine.is_up()) return crash_engine(engine);
        trace("trap: {} dies in a call to its disk", engine.options().name);
        storage_.set_trap(engine.process(), 1 + static_cast<uint32_t>(scheduler_.random(kTrapCallsMax)));
        if (storage_.await_trap(scheduler_.now() + kOutageMax)) crash_engine(engine);
        return;
      case 2:
        trace("fault: {} crashes", destination.name());
        destination.crash();
        return later([&destination] {
          if (!destination.is_up()) destination.start();
        });
      case 3:
        trace("fault: the source crashes");
        source_.crash();
        return later([this] {
          if (!source_.is_up()) source_.start();
        });
      case 4:
        trace("fault: connections to {} break", destination.name());
        return destination.break_connections();
      case 5:
        trace("fault: connections to the source break");
        return source_.break_connections();
      case 6:
        // Half of them once a receiver's queue is full: something of a batch waits for room then.
        if (destination.is_up() && scheduler_.chance(2)) fill_queue(destination);
        trace("fault: links break");
        network_.break_connections();
        network_.faults.cut_off = scheduler_.chance(2);
        return later([this] {
          network_.faults.cut_off = false;
          network_.changed();
        });
      case 7:
        trace("fault: rows are locked, the clock jumps");
        step_wall_clock((static_cast<Time>(scheduler_.random(120)) - 60) * kSecond);
        if (destination.is_up()) destination.lock_rows_for_a_while();
        return;
      case 8:
        trace("{} is restarted in order, parallelism changes", engine.options().name);
        engine.set_parallelism(1 + static_cast<int>(scheduler_.random(6)));
        if (scheduler_.chance(2)) engine.restart_in_order();
        return;
      case 9:
        trace("fault: tables of {} are altered", destination.name());
        return destination.alter_tables();
      case 10:
        return stumble(destination);
      case 11:
        trace("fault: the spill's disk is full");
        storage_.full = true;
        return later([this] { storage_.full = false; });
      case 12:
        if (fans_out()) return;  // a damaged backlog is not made good
        trace("fault: writes to the spill are damaged");
        storage_.damaged_once_in = 4;
        return later([this] { storage_.damaged_once_in = 0; });
      case 13:
        trace("fault: fsyncs fail");
        storage_.sync_fails = true;
        return later([this] { storage_.sync_fails = false; });
      default:
        trace("fault: reads of the spill fail");
        storage_.read_error_once_in = 4;
        return later([this] { storage_.read_error_once_in = 0; });
    }
  }

  // The destination stands still until the receiver that applies there has no more room.
  void fill_queue(Destination& destination) {
    trace("{} stands still for a while", destination.name());
    destination.lock_tables();
    const Time deadline = scheduler_.now() + kQueueFull;
    const auto is_full = [&](const auto& engine) {
      return engine->options().destinations.front().name == destination.name() && engine->is_held_back();
    };
    while (scheduler_.now() < deadline && std::ranges::none_of(engines_, is_full)) {
      scheduler_.sleep_until(scheduler_.now() + kMillisecond);
    }
    later([&destination] { destination.unlock_tables(); });
  }

  // Away for a while, back, and standing still in the midst of what it has missed; then connections break once more.
  void stumble(Destination& destination) {
    trace("fault: {} stumbles", destination.name());
    destination.crash();
    pause(kOutageMax);
    if (!destination.is_up()) destination.start();
    const size_t enough = destination.committed().expected.count() + scheduler_.random(kCaughtUpMax);
    const Time deadline = scheduler_.now() + kOutageMax;
    while (scheduler_.now() < deadline && destination.committed().expected.count() < enough) {
      scheduler_.sleep_until(scheduler_.now() + kMillisecond);
    }
    if (destination.is_up()) destination.lock_tables();
    pause(kFaultPauseMax);
    destination.break_connections();
    if (scheduler_.chance(2)) {
      destination.crash();
      destination.start();
    }
    destination.unlock_tables();
  }

  void crash_engine(Engine& engine) {
    if (!engine.is_up()) return;
    if (scheduler_.chance(3)) {
      // Something that it has sent commits after its death, perhaps after its successor's start.
      for (const auto& destination : destinations_) destination->make_commits_slow(true);
      later([this] {
        for (const auto& destination : destinations_) destination->make_commits_slow(false);
      });
      pause(kSecond);
      if (!engine.is_up()) return;
    }
    trace("fault: {} is killed", engine.options().name);
    const Process* const process = engine.process();
    engine.crash();
    source_.client_died(*process);
    for (const auto& destination : destinations_) destination->client_died(*process);
    network_.process_died(*process);
    if (scheduler_.chance(2)) storage_.lose_power(engine.options().directory);
    later([&engine] {
      if (!engine.is_up()) engine.start();
    });
  }

  void heal() {
    pause(kOutageMax);
    healed_ = true;
    for (const auto& destination : destinations_) {
      destination->refuse_rows(0);
      destination->make_commits_slow(false);
    }
    network_.faults.cut_off = false;
    network_.changed();
    storage_.full = storage_.sync_fails = false;
    storage_.damaged_once_in = storage_.read_error_once_in = 0;
    if (!source_.is_up()) source_.start();
    for (const auto& destination : destinations_) {
      if (!destination->is_up()) destination->start();
    }
    for (const auto& engine : engines_) {
      if (!engine->is_up()) engine->start();
    }
  }

  Scheduler scheduler_;
  Network network_;
  Storage storage_;
  const Plan plan_;
  Process nature_{.name = "nature"};
  Source source_;
  std::vector<std::unique_ptr<Destination>> destinations_;
  const Destination* still_ = nullptr;  // takes nothing, and nobody pauses it
  std::vector<std::unique_ptr<Engine>> engines_;
  uint64_t faults_ = 0;
  bool healed_ = false;
  bool over_ = false;
};

}  // namespace

WorldResult run_world(uint64_t seed, const std::filesystem::path& directory) {
  // Not destroyed: fibers still stand where they are. The process ends.
  auto* const world = new World(seed, directory);
  return world->run();
}

}  // namespace thalweg::simulation
