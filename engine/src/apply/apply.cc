#include "apply/apply.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/parking.h"
#include "apply/coordinator/coordinator.h"
#include "apply/coordinator/recorder.h"
#include "apply/frame_blocks.h"
#include "apply/progress_recovery.h"
#include "apply/reader/reader.h"
#include "apply/reader/transaction_queue.h"
#include "apply/shared_state.h"
#include "base/log.h"
#include "metadata/metadata_cache.h"
#include "spill/spill_space.h"

namespace thalweg::apply {

using base::ErrorCode;

namespace {

// The time that the agents' last statements may take.
constexpr std::chrono::seconds kEndPatience{1};
constexpr std::chrono::milliseconds kEndLook{5};
constexpr std::chrono::milliseconds kStartLook{50};

// Gives up the sessions of a start that waits for the destination, once the start is not wanted any more.
class StartWatch {
 public:
  StartWatch(const std::atomic<bool>* stop_start, std::atomic<bool>& abandon) {
    if (stop_start == nullptr) return;
    thread_ = std::jthread([stop_start, &abandon](const std::stop_token& over) {
      while (!over.stop_requested()) {
        if (*stop_start) return abandon.store(true, std::memory_order_relaxed);
        std::this_thread::sleep_for(kStartLook);
      }
    });
  }

 private:
  std::jthread thread_;
};

}  // namespace

struct Apply::State {
  explicit State(ApplyOptions o)
      : options(std::move(o)),
        pool(&shared.reader_bell),
        spill(options.spill_directory, options.parameters.spill_limit_bytes, *options.clock),
        tables(options.parameters.metadata_cache_bytes),
        transactions(shared) {
    shared.stream_id = options.stream_id;
    shared.destination_conninfo = options.destination_conninfo;
    shared.clock = options.clock;
    shared.compared = options.parameters.compared;
    shared.statement_handlers = options.parameters.statement_handlers;
    shared.retries = options.retries == nullptr ? &own_retries : options.retries;
    set_parameters(options.parameters);
  }

  void set_parameters(const ApplyParameters& parameters) {
    shared.parameters.set(parameters);
    shared.retries->go_by(shared.parameters.errors.get());
  }

  ApplyOptions options;
  Retries own_retries;
  SharedState shared;
  BlockPool pool;
  spill::SpillSpace spill;
  metadata::MetadataCache tables;
  TransactionQueue transactions;
  // Agents, in the order in which they start and end.
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Reader> reader;
  // Writer: start and join. Readers: anybody.
  std::atomic<bool> started{false};
  std::atomic<bool> joined{false};
  base::Lsn begins_at;  // Writer: start(), before anything else runs
};

Apply::Apply(ApplyOptions options) : state_(std::make_unique<State>(std::move(options))) {}

Apply::~Apply() {
  request_stop(false);
  join();
}

base::Result<base::Lsn> Apply::start() {
  State& s = *state_;
  const StartWatch watch(s.options.stop_start, s.shared.abandon);
  pg::ConnectOptions session = s.shared.connect_options("progress");
  session.board = s.options.board;
  THALWEG_ASSIGN(auto progress, pg::Connection::open(s.options.destination_conninfo, session));
  THALWEG_TRY(progress.script("SET synchronous_commit = on; SET statement_timeout = 0; SET search_path = pg_catalog"));
  THALWEG_TRY(ensure_schema(progress));
  THALWEG_TRY(take_lock(progress, s.options.stream_id, LockSpan::session));
  THALWEG_ASSIGN(const Recovered recovered, recover_progress(progress, s.options.stream_id));
  uint64_t parked_count = 0;
  THALWEG_ASSIGN(ParkedSet parked, load_parked(progress, s.options.stream_id, parked_count));
  THALWEG_ASSIGN(auto catalog,
                 pg::Connection::open(s.options.destination_conninfo, s.shared.connect_options("reader")));
  THALWEG_TRY(s.spill.clear());

  s.shared.retries->forget_before(recovered.low_watermark);
  s.begins_at = recovered.low_watermark;
  for (const LsnRange& range : recovered.applied.list()) s.begins_at = std::max(s.begins_at, range.end);
  s.shared.epoch = recovered.epoch;
  s.shared.low_watermark.store(recovered.low_watermark.value);
  s.shared.confirmed.store(recovered.low_watermark.value);
  s.shared.parked.store(parked_count);
  s.recorder = std::make_unique<Recorder>(s.shared, std::move(progress));
  s.coordinator = std::make_unique<Coordinator>(s.shared, s.tables, s.transactions, std::move(parked));
  s.reader = std::make_unique<Reader>(s.shared, s.options, recovered.applied, std::move(catalog), s.pool, s.spill,
                                      s.tables, s.transactions);
  s.started.store(true, std::memory_order_release);
  base::log_event(base::LogLevel::info, "apply_started",
                  {{"stream", s.options.stream_id}, {"low_watermark", base::to_string(recovered.low_watermark)}});
  return recovered.low_watermark;
}

void Apply::request_stop(bool drain) {
  State& s = *state_;
  if (drain) {
    s.shared.drain.store(true, std::memory_order_release);
    s.shared.reader_bell.ring();
  } else {
    s.shared.stop();
  }
}

// A statement may wait for somebody's lock at the destination, or for a link that has fallen silent, for longer than
// whoever waits here can: another destination of the stream, say. It is then as if the engine had been killed.
void Apply::give_up_if_need_be() {
  State& s = *state_;
  const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  while (s.shared.ending() && !s.recorder->ended()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      base::log_event(base::LogLevel::warning, "apply_abandoned", {{"stream", s.options.stream_id}});
      s.shared.abandon.store(true, std::memory_order_relaxed);
      return;
    }
    std::this_thread::sleep_for(kEndLook);
  }
}

void Apply::join() {
  State& s = *state_;
  if (!s.started.load(std::memory_order_acquire) || s.joined.load(std::memory_order_acquire)) return;
  give_up_if_need_be();
  // Each one's end lets the next one end; the coordinator takes its appliers along, and the recorder has the last word.
  // Samples may still be taken: the agents' objects stay until this object goes.
  s.reader->join();
  s.coordinator->join();
  s.recorder->join();
  s.joined.store(true, std::memory_order_release);
}

void Apply::set_parameters(const ApplyParameters& parameters) {
  state_->set_parameters(parameters);
  state_->spill.set_limit(parameters.spill_limit_bytes);
  state_->shared.coordinator_bell.ring();
}

ApplyStatus Apply::status() const {
  const State& s = *state_;
  ApplyStatus status;
  status.running = s.started.load(std::memory_order_acquire) && !s.recorder->ended();
  status.error = s.shared.error.get();
  status.applied = {s.shared.low_watermark.load(std::memory_order_acquire)};
  status.confirmed = {s.shared.confirmed.load(std::memory_order_acquire)};
  return status;
}

base::Lsn Apply::begins_at() const { return state_->begins_at; }

const std::atomic<uint64_t>& Apply::confirmed_lsn() const { return state_->shared.confirmed; }

std::vector<telemetry::ComponentSample> Apply::sample() const {
  const State& s = *state_;
  if (!s.started.load(std::memory_order_acquire)) return {};
  std::vector<telemetry::ComponentSample> samples{s.reader->sample(), s.coordinator->sample()};
  for (int i = 0; i < s.coordinator->applier_count(); ++i) {
    if (s.coordinator->applier(i).active()) samples.push_back(s.coordinator->applier(i).sample());
  }
  return samples;
}

std::vector<telemetry::TableSample> Apply::tables() const {
  const State& s = *state_;
  std::vector<telemetry::TableSample> tables;
  if (!s.started.load(std::memory_order_acquire)) return tables;
  for (int i = 0; i < s.coordinator->applier_count(); ++i) s.coordinator->applier(i).add_tables(tables);
  return tables;
}

std::array<uint64_t, telemetry::LatencyHistogram::kBucketCount> Apply::latency() const {
  const State& s = *state_;
  std::array<uint64_t, telemetry::LatencyHistogram::kBucketCount> sum{};
  if (!s.started.load(std::memory_order_acquire)) return sum;
  const auto& markers = s.coordinator->markers().latency();
  for (size_t bucket = 0; bucket < sum.size(); ++bucket) sum[bucket] = markers.count(bucket);
  for (int i = 0; i < s.coordinator->applier_count(); ++i) {
    const auto& histogram = s.coordinator->applier(i).latency();
    for (size_t bucket = 0; bucket < sum.size(); ++bucket) sum[bucket] += histogram.count(bucket);
  }
  return sum;
}

uint64_t Apply::parked_transactions() const { return state_->shared.parked.load(std::memory_order_relaxed); }

void Apply::add_to(telemetry::MarkerTrail& trail) const {
  const State& s = *state_;
  if (!s.started.load(std::memory_order_acquire)) return;
  const Coordinator& coordinator = *s.coordinator;
  trail.stages.push_back({.component = "APPLY", .stage = "DEQUEUE", .passages = s.reader->markers().read()});
  trail.stages.push_back(
      {.component = "APPLY", .stage = "DISPATCH", .passages = coordinator.markers().dispatches().read()});
  trail.stages.push_back({.component = "APPLY", .stage = "COMMIT", .passages = coordinator.markers().commits().read()});
}

telemetry::TransactionSamples Apply::transactions() const {
  if (!status().running) return {};
  telemetry::TransactionSamples all = *state_->coordinator->transactions();
  const auto open = state_->reader->transactions();
  all.open = open->open;
  all.shown.insert(all.shown.end(), open->shown.begin(), open->shown.end());
  return all;
}

void Apply::hold_for_errors(std::chrono::milliseconds timeout) {
  SharedState& shared = state_->shared;
  shared.is_held.store(false, std::memory_order_relaxed);
  const auto until = shared.clock->steady_now() + timeout;
  shared.hold_until.store(until.time_since_epoch().count(), std::memory_order_relaxed);
  shared.reload_parked.store(true, std::memory_order_release);
  shared.coordinator_bell.ring();
}

bool Apply::is_held() const { return state_->shared.is_held.load(std::memory_order_acquire) || !status().running; }

void Apply::note_errors_changed() {
  state_->shared.hold_until.store(0, std::memory_order_relaxed);
  state_->shared.reload_parked.store(true, std::memory_order_release);
  state_->shared.coordinator_bell.ring();
}

}  // namespace thalweg::apply
