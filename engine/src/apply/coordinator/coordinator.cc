#include "apply/coordinator/coordinator.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "apply/applier/parking.h"
#include "apply/data_error.h"
#include "base/log.h"

namespace thalweg::apply {

using telemetry::Activity;
using telemetry::ActivityScope;

Coordinator::Coordinator(SharedState& shared, metadata::MetadataCache& cache, TransactionQueue& in, ParkedSet parked)
    : shared_(shared),
      cache_(cache),
      in_(in),
      schedule_({shared.low_watermark.load(std::memory_order_relaxed)}, std::move(parked), shared.policy),
      flow_(shared.policy),
      commit_order_(shared) {
  thread_ = std::thread([this] { run(); });
}

Coordinator::~Coordinator() {
  join();
  shared_.coordinator.store(nullptr, std::memory_order_release);
}

void Coordinator::join() {
  if (!thread_.joinable()) return;
  shared_.coordinator_bell.ring();
  thread_.join();
  for (const auto& applier : appliers()) applier->join();
}

// Keeps as many as `parallelism` says: makes or revives what is missing, retires what is too much once it has no group.
void Coordinator::fit_appliers() {
  const LiveParameters& parameters = shared_.parameters;
  if (const uint64_t changes = parameters.errors.changes(); changes != error_policies_seen_) {
    error_policies_seen_ = changes;
    schedule_.retry_now();
  }
  const int wanted = std::clamp(parameters.parallelism.load(std::memory_order_relaxed), 1, kAppliersMax);
  schedule_.set_limits({.appliers = wanted,
                        .group_lcrs = parameters.group_size.load(std::memory_order_relaxed),
                        .in_commit_order = parameters.commit_serialization.load(std::memory_order_relaxed) ==
                                           CommitSerialization::full});
  const int made = applier_count_.load(std::memory_order_relaxed);
  for (int i = 0; i < made; ++i) {
    Applier& applier = *appliers_[static_cast<size_t>(i)];
    if (i < wanted && applier.retiring()) applier.revive();
    if (i >= wanted && !applier.retiring() && schedule_.slot(i).idle()) applier.retire();
  }
  for (int i = made; i < wanted; ++i) {
    appliers_[static_cast<size_t>(i)] = std::make_unique<Applier>(shared_, cache_, i + 1);
    applier_count_.store(i + 1, std::memory_order_release);
  }
  for (int i = 0; i < wanted; ++i) schedule_.set_solo_lcrs(i, appliers_[static_cast<size_t>(i)]->solo_lcrs());
}

Moment Coordinator::moment() const {
  return {.now = now(),
          .unix_now = shared_.clock->unix_now(),
          .steady_flow = flow_.steady(),
          .more_comes = !in_.closed(),
          .standstill = shared_.reload_parked.load(std::memory_order_relaxed)};
}

// One look at everything that may have come. True: worth another one.
bool Coordinator::step() {
  bool moved = take_finished();
  if (!shared_.ending()) {
    moved = take_transactions() || moved;
    moved = hand_out() || moved;
  }
  waiting_groups_.set(schedule_.waiting());
  show_oldest();
  return moved;
}

// Nothing is left to do now: how long the agent may sleep unless a bell rings. nullopt if work arrived meanwhile.
std::optional<Coordinator::Clock::duration> Coordinator::prepare_sleep() {
  const bool ending = shared_.ending();
  const bool has_groups = !schedule_.window().empty();
  state_.set(!has_groups ? "IDLE" : ending ? "SHUTTING DOWN CLEANLY" : "APPLYING");
  tell_idle_appliers();
  const NextLook next = schedule_.next_look(moment());
  const bool takes_more = !ending && next.takes_more;
  in_.set_next_is_news(takes_more);
  if (takes_more && schedule_.waiting() == 0 && in_.peek() != nullptr) return std::nullopt;
  time_.enter(has_groups ? Activity::execute : Activity::idle);
  return next.in;
}

// While little comes the agent is not woken: that would be two more waits for a processor on a change's way.
// Exceptional work is the agent's.
bool Coordinator::try_work() {
  bool done = true;
  baton_.work([&] { done = look(); });
  return done;
}

// A look by a thread with news. False: something is left for the agent.
bool Coordinator::look() {
  if (shared_.ending() || in_.closed() || in_.waiting_lcrs() > shared_.policy.news_lcrs_max ||
      shared_.reload_parked.load(std::memory_order_acquire))
    return false;
  time_.enter(Activity::busy);
  flow_.measure(in_.pushed_lcrs(), now());
  std::optional<Clock::duration> wait;
  while (!wait) {
    while (step()) continue;
    wait = prepare_sleep();
  }
  return now() + *wait >= wakes_at_;
}

// A thread with news does the work meanwhile. While changes keep coming, the agent wakes up often enough by itself that
// no thread has to wake it for a held group.
void Coordinator::sleep(uint32_t ticket, Clock::duration wait) {
  const uint64_t lcrs = in_.pushed_lcrs();
  if (lcrs != lcrs_when_woken_) wait = std::min<Clock::duration>(wait, shared_.policy.others_come_wait);
  lcrs_when_woken_ = lcrs;
  wakes_at_ = now() + wait;
  baton_.sleep([&] {
    shared_.coordinator_bell.wait(ticket, std::chrono::ceil<std::chrono::microseconds>(wait));
    ticket = shared_.coordinator_bell.ticket();
    wait = shared_.policy.others_come_wait;  // rung by whoever has the baton, if that cannot do it all
  });
  time_.enter(Activity::busy);
}

// Keeps the baton at its end.
void Coordinator::run() {
  time_.enter(Activity::busy);
  fit_appliers();
  shared_.coordinator.store(this, std::memory_order_release);  // from here on others may do its work
  while (true) {
    const uint32_t ticket = shared_.coordinator_bell.ticket();
    flow_.measure(in_.pushed_lcrs(), now());
    show_transactions();
    if (!shared_.ending()) {
      fit_appliers();
      if (shared_.reload_parked.load(std::memory_order_acquire)) reload_parked();
    }
    const bool closed = in_.closed();  // before the look at what is left
    const bool moved = step();
    if (shared_.ending() && schedule_.running() == 0) break;
    // Transactions that wait for a retry are not lost: nobody has confirmed them.
    const bool only_retries = closed && !moved && schedule_.awaits_only_retries(moment());
    if (only_retries || (closed && in_.peek() == nullptr && schedule_.window().empty())) {
      if (in_.failure()) shared_.error.set(*in_.failure());
      break;
    }
    commit_order_.look(schedule_, appliers(), now(), time_);
    if (moved) continue;
    if (const auto wait = prepare_sleep()) sleep(ticket, *wait);
  }
  state_.set(shared_.error.is_set() ? "ABORTING" : "SHUTTING DOWN CLEANLY");
  shared_.commits_ended.store(true, std::memory_order_release);
  shared_.stop();
  for (const auto& applier : appliers()) applier->ring();
  ended_.store(true, std::memory_order_release);
}

void SharedState::tell_coordinator() {
  Coordinator* const there = coordinator.load(std::memory_order_acquire);
  if (there == nullptr || !there->try_work()) coordinator_bell.ring();
}

bool Coordinator::take_finished() {
  bool any = false;
  for (int i = 0; i < applier_count(); ++i) {
    while (Group* const group = appliers_[static_cast<size_t>(i)]->take_finished()) {
      const size_t counted = group->counted;
      record(*group, schedule_.complete(i, *group, moment()), counted);
      any = true;
    }
  }
  if (!any) return false;
  for (const Settlement& settled : schedule_.settle()) {
    appliers_[static_cast<size_t>(settled.applier)]->tell_settled(settled.committed);
  }
  publish_progress(schedule_.advance());
  return true;
}

void Coordinator::postpone(const Group& group) {
  const Transaction& transaction = *group.transactions[group.run.done];
  const base::UnixMicros failed_at = shared_.clock->unix_now();
  shared_.retries->note(transaction.commit_lsn, transaction.xid,
                        {.number = transaction.retries,
                         .times = transaction.retries_most,
                         .due = group.retry_at,
                         .at = {failed_at.value + std::chrono::microseconds(*group.run.retry_in).count()},
                         .failed_at = failed_at,
                         .error = *group.run.error});
  // The next look would come when it is due, and find it waiting for nothing, at each of many short retries.
  if (group.run.retry_in->count() > 0) shown_at_ = {};
  retried_transactions_.add();
  base::log_event(base::LogLevel::warning, "transaction_retried",
                  {{"stream", shared_.stream_id},
                   {"xid", int64_t{transaction.xid.value}},
                   {"retry", int64_t{transaction.retries}},
                   {"in_seconds", int64_t{group.run.retry_in->count()}},
                   {"code", base::name_of(group.run.error->code)},
                   {"sqlstate", group.run.error->sqlstate},
                   {"table", group.run.error->table}});
}

// Transactions of the group from `counted` on have not been counted.
void Coordinator::count_done(const Group& group, size_t counted) {
  const auto done = std::span(group.transactions).subspan(counted, group.counted - counted);
  const auto parked = static_cast<uint64_t>(
      std::ranges::count_if(done, [](const auto& transaction) { return transaction->parked_with.has_value(); }));
  transactions_.add(done.size() - parked);
  errors_.add(parked);
  for (const auto& transaction : done) {
    if (transaction->retries > 0) shared_.retries->forget(transaction->commit_lsn, transaction->xid);
  }
  if (parked > 0) shared_.parked.fetch_add(parked, std::memory_order_relaxed);
}

void Coordinator::record(const Group& group, Completion completion, size_t counted) {
  switch (completion) {
    case Completion::committed:
      count_done(group, counted);
      return;
    case Completion::postponed:
      count_done(group, counted);
      postpone(group);
      return;
    case Completion::again:
      retried_groups_.add();
      base::log_event(base::LogLevel::debug, "group_retried",
                      {{"stream", shared_.stream_id}, {"group", group.number}, {"reason", group.run.error->message}});
      return;
    case Completion::stopping:
      return;
    case Completion::failed:
      errors_.add();
      if (is_about_data(group.run.error->code)) shared_.retries->clear();
      shared_.error.set(*group.run.error);
      shared_.stop();
      return;
  }
}

// After every look, not only when something commits: the first group may wait for a lock, and then nothing does.
void Coordinator::show_oldest() {
  const auto& window = schedule_.window();
  oldest_commit_time_.store(window.empty() ? 0 : window.front()->transactions.front()->commit_time.value,
                            std::memory_order_relaxed);
}

// `committed`: so many more transactions at the window's beginning have committed.
void Coordinator::publish_progress(uint64_t committed) {
  if (committed == 0) return;
  shared_.low_watermark.store(schedule_.low_watermark().value, std::memory_order_release);
  markers_.committed(schedule_.low_watermark(), shared_.clock->unix_now());
  shared_.commits.store(shared_.commits.load(std::memory_order_relaxed) + committed, std::memory_order_release);
  shared_.committed_through.store(schedule_.committed_through(), std::memory_order_release);
  for (const auto& applier : appliers()) {
    if (applier->waits_for_turn()) applier->ring();
  }
}

// PROGRESS, and transactions of which nothing is left: they only move the low watermark.
void Coordinator::pass_empty() {
  while (in_.peek() != nullptr && in_.peek()->empty()) {
    const auto transaction = in_.pop();
    schedule_.cover(transaction->end_lsn);
    shared_.low_watermark.store(schedule_.low_watermark().value, std::memory_order_release);
    if (transaction->commit_time.value == 0) continue;  // PROGRESS
    const base::UnixMicros passed_at = shared_.clock->unix_now();
    markers_.dispatched(*transaction, passed_at);
    markers_.committed(schedule_.low_watermark(), passed_at);
  }
}

bool Coordinator::take_transactions() {
  bool any = false;
  Moment at = moment();
  while (true) {
    pass_empty();
    const Transaction* const next = in_.peek();
    if (next == nullptr) return any;
    // An earlier apply may have retried it.
    const auto retry = shared_.retries->find(next->commit_lsn, next->xid);
    const bool awaits_retry = retry && retry->due > at.now;
    const Admission admission = schedule_.admission(*next, at, awaits_retry);
    if (admission == Admission::no_room) return any;
    if (admission == Admission::begins_group) {
      // Hands out waiting groups before another one is formed: under light load a group has one transaction.
      if (hand_out()) {
        any = true;
        continue;
      }
      at = moment();
      groups_.add();
    }
    auto transaction = in_.pop();
    if (retry) transaction->retries = retry->number;
    if (awaits_retry) transaction->retry_at = retry->due;
    if (schedule_.add(std::move(transaction), admission, at)) dependent_groups_.add();
    any = true;
  }
}

bool Coordinator::hand_out() {
  if (schedule_.waiting() == 0) return false;
  const auto& assignments = schedule_.assign(moment());
  for (const Assignment& assignment : assignments) {
    appliers_[static_cast<size_t>(assignment.applier)]->assign(assignment.group, assignment.beside);
  }
  return !assignments.empty();
}

// The error queue was changed: what is parked is read again, with nothing on its way there.
void Coordinator::reload_parked() {
  if (schedule_.running() > 0) return;
  if (now().time_since_epoch().count() < shared_.hold_until.load(std::memory_order_relaxed)) {
    shared_.is_held.store(true, std::memory_order_release);
    return;
  }
  const ActivityScope network(time_, Activity::network);
  // First: a change that comes while it is read has it read once more.
  shared_.reload_parked.exchange(false, std::memory_order_acq_rel);
  uint64_t count = 0;
  auto connection = pg::Connection::open(shared_.destination_conninfo, shared_.connect_options("coordinator"));
  auto loaded = connection ? load_parked(*connection, shared_.stream_id, count)
                           : base::Result<ParkedSet>(std::unexpected(connection.error()));
  if (!loaded) {
    shared_.error.set(loaded.error());
    return;
  }
  schedule_.set_parked(std::move(*loaded));
  shared_.parked.store(count, std::memory_order_relaxed);
}

// So that an applier without work shows why: nothing there, or nothing that may run yet.
void Coordinator::tell_idle_appliers() {
  uint64_t blocked = schedule_.blocked();
  for (int i = 0; i < schedule_.appliers(); ++i) {
    if (!schedule_.slot(i).idle()) continue;
    appliers_[static_cast<size_t>(i)]->set_dependency_wait(blocked > 0);
    if (blocked > 0) --blocked;
  }
}

telemetry::ComponentSample Coordinator::sample() const {
  const int64_t oldest = oldest_commit_time_.load(std::memory_order_relaxed);
  const int64_t lag = oldest == 0 ? 0 : std::max<int64_t>(0, shared_.clock->unix_now().value - oldest);
  telemetry::ComponentSample out{
      .type = "APPLY",
      .name = "apply",
      .sub_component = "APPLY COORDINATOR",
      .server = 0,
      .state = state_.get(),
      .time_ns = time_.sample(),
      .counters = {{"transactions", transactions_.get()},
                   {"groups", groups_.get()},
                   {"dependent_groups", dependent_groups_.get()},
                   {"retried_groups", retried_groups_.get()},
                   {"retried_transactions", retried_transactions_.get()},
                   {"errors", errors_.get()}},
      .gauges = {{"waiting_groups", static_cast<int64_t>(waiting_groups_.get())}, {"low_watermark_lag_us", lag}}};
  if (const auto latency = markers_.commits().latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

}  // namespace thalweg::apply
