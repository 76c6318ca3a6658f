#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "daemon/backlog_words.h"
#include "daemon/destination.h"
#include "daemon/stream_status.h"

// A Destination as the control API shows it.

namespace thalweg::daemon {
namespace {

using control::BacklogState;

constexpr double kMiB = 1024 * 1024;

// A backlog's sentence in an error's text, or none: what becomes of the changes meanwhile.
std::string backlog_text(const control::BacklogStatus& backlog) {
  if (backlog.state == BacklogState::in_memory) return "";
  const double mib = static_cast<double>(backlog.bytes) / kMiB;
  if (mib < 0.1) return "Its backlog, less than 0.1 MiB, is on the engine's disk.";
  return fmt::format("Its backlog of {:.1f} MiB is on the engine's disk.", mib);
}

template <typename Key, typename Value>
void add_buckets(std::vector<std::pair<Key, Value>>& to, const std::vector<std::pair<Key, Value>>& more) {
  std::map<Key, Value> sums(to.begin(), to.end());
  for (const auto& [upper, count] : more) sums[upper] += count;
  to.assign(sums.begin(), sums.end());
}

}  // namespace

bool Destination::has_caught_up_or_failed() const {
  std::lock_guard lock(mutex_);
  return caught_up_ || error_ || !life_.is_enabled() || course_.is_dropped();
}

void Destination::retry() {
  {
    std::lock_guard lock(mutex_);
    if (life_.state() != State::aborted && !retry_due_) return;  // it works, or is already trying
    course_.retry();
  }
  changed_.notify_all();
}

void Destination::start_over() {
  {
    std::lock_guard lock(mutex_);
    course_.start_over();
  }
  retry();
}

void Destination::set_parameters(const control::StreamParameters& parameters) {
  {
    std::lock_guard lock(mutex_);
    if (parameters_ == parameters) return;
    parameters_ = parameters;
  }
  space_.set_limit(parameters.queue_spill_limit_bytes());
  std::shared_lock lock(session_lock_);
  if (consumer_) consumer_->set_parameters(parameters);
}

control::DestinationStatus Destination::status() const {
  control::DestinationStatus out;
  out.mode = options_.mode;
  {
    std::lock_guard lock(mutex_);
    out.id = id_;
    out.state = life_.state();
    out.error = error_;
    out.retry_at = retry_at_;
  }
  std::vector<telemetry::TableSample> changes;
  bool running = false;
  std::optional<base::Error> full;
  bool not_durable = false;
  out.confirmed = confirmed();
  out.applied = {durable_.load(std::memory_order_acquire)};
  if (options_.backlog) {
    const spill::SpillUse use = space_.use();
    out.backlog = {.state = BacklogState::in_memory,
                   .frames = 0,
                   .lcrs = 0,
                   .bytes = use.bytes,
                   .age = use.age,
                   .limit_bytes = space_.limit()};
  }
  {
    std::shared_lock lock(session_lock_);
    if (consumer_) {
      running = true;
      out.applied = std::max(out.applied, consumer_->applied());
      if (reads_queue()) out.confirmed = {consumer_->confirmed().load(std::memory_order_acquire)};
      changes = consumer_->tables();
      if (consumer_->apply() != nullptr) {
        out.counted_since = counted_since_;
        telemetry::TransactionSamples on_their_way = consumer_->apply()->transactions();
        out.retrying = on_their_way.retrying;
        out.next_retry = std::move(on_their_way.next_retry);
      }
      if (ruled_) out.rule_counts = control::RuleCounts{.counted_since = counted_since_, .tables = ruled_->sample()};
      if (auto trouble = consumer_->trouble(); trouble && !out.error) {
        out.error = control::ReportedError{*trouble, options_.clock->unix_now()};
        out.state = State::retrying;
      }
    }
    out.backlog.frames += logs_.frames_left();
    out.backlog.lcrs += logs_.changes_left();
    if (backlog_ && !is_dropped()) {
      const queue::BacklogStatistics backlog = backlog_->statistics();
      out.backlog.frames += backlog.frames;
      out.backlog.lcrs += backlog.lcrs;
      if (backlog.on_disk || !logs_.empty()) out.backlog.state = BacklogState::on_disk;
      full = backlog.failure;
      not_durable = backlog.not_durable;
    }
  }
  if (full) {
    if (!out.error) out.error = control::ReportedError{*full, options_.clock->unix_now()};
    if (not_durable) {
      add_unsafe_backlog(out.error->error.message, full->message);
    } else {
      out.backlog.state = BacklogState::full;
      add_full_backlog(out.error->error.message, full->message);
    }
  } else if (out.error && options_.backlog && out.state != State::dropped) {
    std::string& message = out.error->error.message;
    const std::string named = fmt::format("Destination \"{}\": ", options_.definition.destination.name);
    if (!message.starts_with(named)) message.insert(0, named);
    if (const std::string backlog = backlog_text(out.backlog); !backlog.empty()) add_sentence(message, backlog);
  }
  add_tables(out, options_.definition, changes,
             options_.progress == nullptr ? instantiation::ProgressReport{} : options_.progress->report(), running);
  if (options_.tables != nullptr) options_.tables->add_to(out.tables);
  return out;
}

void Destination::add_to(control::StreamStats& stats) const {
  control::StreamStats own;
  {
    std::shared_lock lock(session_lock_);
    if (backlog_ && !is_dropped()) {
      const queue::BacklogStatistics backlog = backlog_->statistics();
      const spill::SpillUse use = space_.use();
      own.components.push_back(
          {.type = "QUEUE",
           .name = "backlog",
           .sub_component = "QUEUE SPILL",
           .server = 0,
           .state = backlog.failure   ? "FULL"
                    : backlog.on_disk ? "SPILLING"
                                      : "NORMAL",
           .time_ns = {},
           .counters = {{"spilled_lcrs", backlog.spilled_lcrs}, {"spilled_bytes", backlog.spilled_bytes}},
           .gauges = {{"depth", static_cast<int64_t>(backlog.frames)},
                      {"spill_frames", static_cast<int64_t>(backlog.frames_on_disk)},
                      {"spill_bytes", static_cast<int64_t>(use.bytes)},
                      {"spill_age_us", use.age.count()}}});
    }
    if (consumer_) consumer_->add_to(own);
  }
  const std::string destination = id();
  for (telemetry::ComponentSample& component : own.components) {
    component.destination = destination;
    stats.components.push_back(std::move(component));
  }
  add_buckets(stats.latency, own.latency);
  for (const telemetry::TableSample& table : own.tables) telemetry::add_table(stats.tables, table);
  stats.error_queue_transactions += own.error_queue_transactions;
  stats.destinations.push_back({.id = destination,
                                .latency = std::move(own.latency),
                                .tables = std::move(own.tables),
                                .error_queue_transactions = own.error_queue_transactions});
}

void Destination::add_to(telemetry::MarkerTrail& trail) const {
  const size_t first = trail.stages.size();
  {
    std::shared_lock lock(session_lock_);
    if (consumer_) consumer_->add_to(trail);
  }
  for (size_t i = first; i < trail.stages.size(); ++i) trail.stages[i].destination = id();
}

void Destination::add_to(telemetry::TransactionSamples& transactions) const {
  telemetry::TransactionSamples own;
  {
    std::shared_lock lock(session_lock_);
    if (consumer_ && consumer_->apply() != nullptr) own = consumer_->apply()->transactions();
  }
  const std::string destination = id();
  for (telemetry::TransactionSample& sample : own.shown) {
    sample.destination = destination;
    transactions.shown.push_back(std::move(sample));
  }
  transactions.open += own.open;
  transactions.waiting += own.waiting;
  transactions.executing += own.executing;
  transactions.queued_lcrs += own.queued_lcrs;
}

void Destination::forget_retries() {
  if (options_.retries != nullptr) options_.retries->clear();
}

void Destination::note_errors_changed() {
  ++error_changes_;  // first: an apply that starts right now looks at it once it can be found here
  std::shared_lock lock(session_lock_);
  if (consumer_ && consumer_->apply() != nullptr) consumer_->apply()->note_errors_changed();
}

void Destination::hold_for_errors(std::chrono::milliseconds most) {
  std::shared_lock lock(session_lock_);
  if (consumer_ && consumer_->apply() != nullptr) consumer_->apply()->hold_for_errors(most);
}

bool Destination::is_held() const {
  std::shared_lock lock(session_lock_);
  return !consumer_ || consumer_->apply() == nullptr || consumer_->apply()->is_held();
}

}  // namespace thalweg::daemon
