#include "daemon/fan_out.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "daemon/queue_sample.h"

namespace thalweg::daemon {
namespace {

using base::Lsn;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kDrainPatience{30'000};  // when it is stopped
// Between two sessions. All destinations stand still meanwhile: what a slow one has not got by then comes again.
constexpr std::chrono::milliseconds kSessionDrainPatience{300};
// So long after another one a destination may still have something to commit; then its backlog is to be durable.
constexpr std::chrono::seconds kBehindPatience{15};
constexpr std::chrono::seconds kMarkInterval{1};

queue::LcrQueueOptions queue_options(const control::StreamParameters& parameters, size_t consumers) {
  return {.slots = static_cast<size_t>(parameters.queue_size),
          .memory_bytes = static_cast<size_t>(parameters.queue_memory_mb) * 1024 * 1024,
          .consumers = consumers};
}

}  // namespace

FanOut::FanOut(FanOutOptions options) : options_(std::move(options)) {
  for (const control::DestinationDefinition& one : options_.definition.destinations) {
    branches_.push_back(
        std::make_unique<Branch>(BranchOptions{.id = one.id,
                                               .definition = control::branch_of(options_.definition, one),
                                               .directory = options_.spill_directory / one.id,
                                               .clock = options_.clock,
                                               .peering = options_.peering,
                                               .tables = options_.watch_of ? options_.watch_of(one.id) : nullptr,
                                               .board = options_.board,
                                               .backlog_segment_bytes = options_.backlog_segment_bytes}));
  }
}

FanOut::~FanOut() { end(false, {}); }

base::Result<void> FanOut::run() {
  while (!*options_.stop) {
    THALWEG_ASSIGN(const SourceSlot slot,
                   start_source(options_.definition, {.stop = options_.stop, .board = options_.board}));
    THALWEG_TRY(run_session(slot));
  }
  return {};
}

base::Result<void> FanOut::run_session(const SourceSlot& slot) {
  auto ran = begin(slot);
  if (ran) {
    options_.on_capture();
    ran = watch();
  }
  const bool for_good = *options_.stop && !options_.goes_on();
  end(ran.has_value(), for_good ? kDrainPatience : kSessionDrainPatience);
  return ran;
}

base::Result<void> FanOut::begin(const SourceSlot& slot) {
  const auto takes = [](const auto& branch) { return !branch->is_dropped(); };
  const auto consumers = static_cast<size_t>(std::ranges::count_if(branches_, takes));
  {
    std::unique_lock lock(session_lock_);
    queue_ = std::make_unique<queue::LcrQueue>(queue_options(options_.definition.parameters, consumers));
    producer_ = make_capture_producer(options_.definition, slot.identity, *queue_, *options_.clock);
  }
  confirmed_.store(slot.confirmed_flush.value, std::memory_order_release);
  marks_.clear();
  std::vector<queue::Spillable*> spillables;
  size_t consumer = 0;
  for (const auto& branch : branches_) {
    THALWEG_TRY(branch->begin(*queue_, consumer, slot, source_end_));
    if (!takes(branch)) continue;
    ++consumer;
    spillables.push_back(branch->spillable());
  }
  spiller_ = std::make_unique<queue::QueueSpiller>(std::move(spillables));
  base::log_event(base::LogLevel::info, "session_begun",
                  {{"stream", options_.definition.id},
                   {"from", base::to_string(slot.confirmed_flush)},
                   {"timeline", slot.identity.timeline}});
  THALWEG_TRY(producer_->start(slot.confirmed_flush, confirmed_));
  producing_ = true;
  return {};
}

base::Result<void> FanOut::watch() {
  while (!*options_.stop && !needs_session()) {
    if (auto failed = producer_->failure()) return std::unexpected(*failed);
    const capture::CaptureStatus capture = producer_->capture_status();
    source_end_.store(capture.source_end.value, std::memory_order_release);
    confirmed_.store(lowest_confirmed().value, std::memory_order_release);
    judge();
    for (const auto& branch : branches_) branch->tend_backlog();
    const bool caught_up =
        std::ranges::all_of(branches_, [](const auto& one) { return one->has_caught_up_or_failed(); });
    options_.set_phase(caught_up && capture.source_end ? "REPLICATING" : "CATCHING UP");
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

bool FanOut::needs_session() const {
  return std::ranges::any_of(branches_, [](const auto& one) { return one->needs_session(); });
}

Lsn FanOut::lowest_confirmed() const {
  Lsn lowest{UINT64_MAX};
  for (const auto& branch : branches_) {
    if (!branch->is_dropped()) lowest = std::min(lowest, branch->confirmed());
  }
  return lowest;
}

// One that cannot follow the others, though nothing fails, holds the source's WAL as well.
void FanOut::judge() {
  const auto now = steady_clock::now();
  if (marks_.empty() || now - marks_.back().at >= kMarkInterval) {
    marks_.push_back({.at = now, .captured = producer_->capture_status().captured});
  }
  Lsn due;
  while (!marks_.empty() && now - marks_.front().at >= kBehindPatience) {
    due = marks_.front().captured;
    marks_.pop_front();
  }
  if (!due) return;
  const bool somebody_has =
      std::ranges::any_of(branches_, [&](const auto& one) { return !one->is_dropped() && one->confirmed() >= due; });
  if (!somebody_has) return;
  for (const auto& branch : branches_) {
    if (!branch->is_dropped() && branch->confirmed() < due) branch->convict();
  }
}

void FanOut::end(bool drain, std::chrono::milliseconds patience) {
  if (!producer_) return;
  if (drain && producing_) {
    producer_->quiesce();
    // Those whose agent is gone, or behind, get it again.
    for (const auto& branch : branches_) branch->request_stop(!branch->needs_session());
    const auto deadline = steady_clock::now() + patience;
    const auto ended = [](const auto& branch) { return branch->has_ended(); };
    while (!std::ranges::all_of(branches_, ended) && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  for (const auto& branch : branches_) branch->request_stop(false);
  spiller_.reset();
  for (const auto& branch : branches_) branch->end();
  if (producing_) {
    confirmed_.store(lowest_confirmed().value, std::memory_order_release);
    producer_->join();
  }
  std::unique_lock lock(session_lock_);
  producing_ = false;
  producer_.reset();
  queue_.reset();
}

void FanOut::set_parameters(const control::StreamDefinition& definition) {
  for (const control::DestinationDefinition& one : definition.destinations) {
    if (Branch* branch = find(one.id)) branch->set_parameters(one.parameters);
  }
}

Branch* FanOut::find(const std::string& destination) const {
  const auto found = std::ranges::find(branches_, destination, [](const auto& one) { return one->id(); });
  return found == branches_.end() ? nullptr : found->get();
}

PipelinePositions FanOut::positions() const {
  std::shared_lock lock(session_lock_);
  PipelinePositions out;
  if (producing_) {
    const capture::CaptureStatus capture = producer_->capture_status();
    out.captured = capture.captured;
    out.source_end = capture.source_end;
    out.confirmed = capture.confirmed;
  }
  return out;
}

std::vector<control::DestinationStatus> FanOut::destinations() const {
  std::vector<control::DestinationStatus> out;
  for (const auto& branch : branches_) out.push_back(branch->status());
  return out;
}

control::StreamStats FanOut::stats() const {
  control::StreamStats stats;
  stats.id = options_.definition.id;
  {
    std::shared_lock lock(session_lock_);
    if (producing_) {
      stats.components.push_back(producer_->sample());
      stats.components.push_back(queue_sample(*queue_));
    }
  }
  for (const auto& branch : branches_) branch->add_to(stats);
  return stats;
}

telemetry::MarkerTrail FanOut::markers() const {
  telemetry::MarkerTrail trail;
  {
    std::shared_lock lock(session_lock_);
    if (producing_) producer_->add_to(trail);
  }
  for (const auto& branch : branches_) branch->add_to(trail);
  return trail;
}

base::Result<void> FanOut::place_marker(const std::string& id, const std::string& label) {
  std::shared_lock lock(session_lock_);
  if (producing_) return producer_->place_marker(id, label);
  return base::fail(base::ErrorCode::marker_refused, "The capture does not run");
}

telemetry::TransactionSamples FanOut::transactions() const {
  telemetry::TransactionSamples all;
  for (const auto& branch : branches_) branch->add_to(all);
  return all;
}

}  // namespace thalweg::daemon
