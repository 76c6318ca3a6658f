#include "daemon/destination.h"

#include <algorithm>
#include <map>

#include "daemon/rule_sets.h"
#include "daemon/stream_status.h"

namespace thalweg::daemon {
namespace {

using base::Lsn;
using control::State;

template <typename Key, typename Value>
void add_buckets(std::vector<std::pair<Key, Value>>& to, const std::vector<std::pair<Key, Value>>& more) {
  std::map<Key, Value> sums(to.begin(), to.end());
  for (const auto& [upper, count] : more) sums[upper] += count;
  to.assign(sums.begin(), sums.end());
}

}  // namespace

Destination::Destination(DestinationOptions options, Folders folders)
    : options_(std::move(options)),
      folders_(std::move(folders)),
      id_(options_.delivery.destination.id),
      parameters_(options_.delivery.destination.parameters) {}

std::string Destination::id() const {
  std::lock_guard lock(mutex_);
  return id_;
}

void Destination::rename(const std::string& id) {
  std::lock_guard lock(mutex_);
  id_ = id;
}

// --- its consumer

void Destination::begin_session(const SourceSlot& slot) {
  {
    std::unique_lock lock(session_lock_);  // confirmed() belongs to anybody
    from_ = slot.confirmed_flush;
  }
  slot_made_at_ = slot.made_at;
  if (source_ != slot.identity) durable_ = 0;  // a position in another history, perhaps
  source_ = slot.identity;
  if (options_.effect != nullptr) options_.effect->expect(judging(present_delivery()));
}

// Null: it has none. Changes that another engine captures have been judged there.
base::Result<std::unique_ptr<RuledFrames>> Destination::with_rules(const control::Delivery& delivery,
                                                                   queue::FrameSource& frames) {
  if (delivery.destination.rules.empty() || delivery.stream.receive_from) return nullptr;
  capture::StreamRules rules = destination_rules(delivery);
  rules.relations_file = folders_.rules / ("ruled-relations-" + id() + ".json");
  auto ruled = std::make_unique<RuledFrames>(frames, std::move(rules), delivery.stream.source.conninfo,
                                             start_context().work.session("thalweg rules " + delivery.stream.id),
                                             *options_.clock);
  THALWEG_TRY(ruled->locate());
  return ruled;
}

base::Result<Lsn> Destination::start_consumer(const control::Delivery& of, const StartedDestination& started,
                                              queue::FrameSource& frames) {
  control::Delivery delivery = of;
  {
    std::lock_guard lock(mutex_);
    delivery.destination.parameters = parameters_;
  }
  if (options_.effect != nullptr) options_.effect->expect(judging(delivery));
  THALWEG_ASSIGN(auto ruled, with_rules(delivery, frames));
  queue::FrameSource& taken = ruled ? *ruled : frames;
  auto consumer = delivery.destination.send_to
                      ? make_sender_consumer(delivery, source_.timeline, *options_.peering, taken, *options_.clock)
                      : make_apply_consumer(delivery, started.catch_up, folders_.apply, taken, *options_.clock,
                                            start_context().work, options_.retries, options_.tables);
  const uint64_t error_changes = error_changes_;
  auto at = consumer->start();
  if (!at) {
    consumer->request_stop(false);
    consumer->join();
    return at;
  }
  if (delivery.destination.send_to) {
    if (auto goes_on = go_on_from(*at); !goes_on) {
      consumer->request_stop(false);
      consumer->join();
      return std::unexpected(goes_on.error());
    }
  }
  note_reached(*at);
  if (options_.effect != nullptr) options_.effect->reached(consumer->begins_at());
  std::unique_lock lock(session_lock_);
  ruled_ = std::move(ruled);
  consumer_ = std::move(consumer);
  counted_since_ = options_.clock->unix_now();
  {  // They may have changed while it started.
    std::lock_guard own(mutex_);
    if (parameters_ != delivery.destination.parameters) consumer_->set_parameters(parameters_);
  }
  if (error_changes_ != error_changes && consumer_->apply() != nullptr) consumer_->apply()->note_errors_changed();
  return at;
}

void Destination::note_effect(const control::Delivery& delivery) {
  if (options_.effect == nullptr) return;
  const Lsn from = std::max(consumer_->begins_at(), captured_before());
  options_.effect->begin(judging(delivery), {.from = from, .since = options_.clock->unix_now()});
}

void Destination::await_effect() {
  if (options_.effect == nullptr) return;
  options_.effect->await(judging(present_delivery()), {.from = captured_before(), .since = options_.clock->unix_now()});
}

void Destination::release_consumer() {
  std::unique_lock lock(session_lock_);
  consumer_.reset();
  ruled_.reset();
}

void Destination::note_confirmed(Lsn lsn) {
  if (lsn > Lsn{durable_}) durable_.store(lsn.value, std::memory_order_release);
}

Lsn Destination::confirmed() const {
  std::shared_lock lock(session_lock_);
  return std::max(from_, durable());
}

void Destination::note_reached(Lsn lsn) { durable_.store(lsn.value, std::memory_order_release); }

std::optional<base::Error> Destination::unresolved_trouble() const {
  return options_.tables == nullptr ? std::nullopt : options_.tables->unresolved();
}

void Destination::take_up(const control::DestinationDefinition& desired) { set_parameters(desired.parameters); }

void Destination::set_parameters(const control::StreamParameters& parameters) {
  {
    std::lock_guard lock(mutex_);
    if (parameters_ == parameters) return;
    parameters_ = parameters;
  }
  std::shared_lock lock(session_lock_);
  if (consumer_) consumer_->set_parameters(parameters);
}

// --- as the control API shows it

control::DestinationStatus Destination::status() const {
  control::DestinationStatus out;
  out.id = id();
  out.mode = mode_of(options_.delivery.stream, options_.delivery.destination);
  out.state = State::initializing;
  out.applied = durable();
  std::vector<telemetry::TableSample> changes;
  bool running = false;
  {
    std::shared_lock lock(session_lock_);
    if (consumer_) {
      running = true;
      out.applied = std::max(out.applied, consumer_->applied());
      changes = consumer_->tables();
      if (consumer_->apply() != nullptr) {
        out.counted_since = counted_since_;
        telemetry::TransactionSamples on_their_way = consumer_->apply()->transactions();
        out.retrying = on_their_way.retrying;
        out.next_retry = std::move(on_their_way.next_retry);
      }
      if (auto trouble = consumer_->trouble()) {
        out.state = State::retrying;
        out.error = control::ReportedError{std::move(*trouble), options_.clock->unix_now()};
      }
      if (ruled_) out.rule_counts = control::RuleCounts{.counted_since = counted_since_, .tables = ruled_->sample()};
    }
  }
  add_tables(out, options_.delivery, changes,
             options_.progress == nullptr ? instantiation::ProgressReport{} : options_.progress->report(), running);
  if (options_.tables != nullptr) options_.tables->add_to(out.tables);
  return out;
}

void Destination::add_to(control::StreamStats& stats) const {
  control::StreamStats own;
  {
    std::shared_lock lock(session_lock_);
    add_backlog_to(own);
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

void Destination::hold_for_errors(std::chrono::milliseconds timeout) {
  std::shared_lock lock(session_lock_);
  if (consumer_ && consumer_->apply() != nullptr) consumer_->apply()->hold_for_errors(timeout);
}

bool Destination::is_held() const {
  std::shared_lock lock(session_lock_);
  return !consumer_ || consumer_->apply() == nullptr || consumer_->apply()->is_held();
}

}  // namespace thalweg::daemon
