#include "apply/coordinator/coordinator.h"

#include <algorithm>
#include <ranges>
#include <string>

#include <fmt/format.h>

#include "apply/applier/parking.h"
#include "apply/coordinator/group_hold.h"
#include "base/log.h"

namespace thalweg::apply {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {

constexpr size_t kWindowGroupsPerApplier = 8;          // how far commits may run ahead of the low watermark
constexpr size_t kWaitingGroupsOver = 2;               // formed ahead of time, besides one an applier
constexpr uint64_t kGroupBytesMax = 16 * 1024 * 1024;  // a group does not grow beyond; one transaction may be more
constexpr std::chrono::seconds kBesideRest{10};        // after one that was in another's way
constexpr uint64_t kFlowLcrsPerMs = 60;                // a steady flow has at least so many LCRs,
constexpr std::chrono::milliseconds kFlowWindow{20};   // measured over this time
constexpr std::chrono::microseconds kHoldWaitMax{1000};
constexpr std::chrono::milliseconds kOthersRunWait{5};  // where little comes
constexpr std::chrono::milliseconds kIdleWait{100};
constexpr std::chrono::milliseconds kWatchPause{20};
constexpr size_t kMarkersMax = 1024;
constexpr uint64_t kNewsLcrsMax = 500;  // more that wait are a backlog: whoever has news has other work, too

}  // namespace

Coordinator::Coordinator(SharedState& shared, metadata::MetadataCache& cache, TransactionQueue& in, ParkedSet parked)
    : shared_(shared), cache_(cache), in_(in), parked_(std::move(parked)) {
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
  for (int i = 0; i < applier_count(); ++i) appliers_[static_cast<size_t>(i)]->join();
}

// As many as `parallelism` says: makes or revives what is missing, retires what is too much once it has no group.
void Coordinator::fit_appliers() {
  usable_ = std::clamp(shared_.parameters.parallelism.load(std::memory_order_relaxed), 1, kAppliersMax);
  const int made = applier_count_.load(std::memory_order_relaxed);
  for (int i = 0; i < made; ++i) {
    Applier& applier = *appliers_[static_cast<size_t>(i)];
    if (i < usable_ && applier.retiring()) applier.revive();
    if (i >= usable_ && !applier.retiring() && busy_with_[static_cast<size_t>(i)] == nullptr) applier.retire();
  }
  for (int i = made; i < usable_; ++i) {
    appliers_[static_cast<size_t>(i)] = std::make_unique<Applier>(shared_, cache_, i + 1);
    applier_count_.store(i + 1, std::memory_order_release);
  }
}

int Coordinator::idle_appliers() const {
  int idle = 0;
  for (int i = 0; i < usable_; ++i) idle += busy_with_[static_cast<size_t>(i)] == nullptr ? 1 : 0;
  return idle;
}

bool Coordinator::has_room() const { return window_.size() < static_cast<size_t>(usable_) * kWindowGroupsPerApplier; }

Group* Coordinator::tail() { return window_.empty() ? nullptr : window_.back().get(); }

bool Coordinator::has_committed(uint64_t number) const {
  if (number <= committed_through_) return true;
  return window_[number - committed_through_ - 1]->state == GroupState::committed;
}

bool Coordinator::is_ready(const Group& group) const {
  if (group.after > committed_through_) return false;
  return std::ranges::all_of(group.predecessors, [this](uint64_t number) { return has_committed(number); });
}

bool Coordinator::is_full(const Group& group) const {
  return group.lcrs >= shared_.parameters.group_size.load(std::memory_order_relaxed) || group.bytes >= kGroupBytesMax;
}

// How much longer a group that could run waits for company.
Coordinator::Clock::duration Coordinator::hold_left(const Group& group) const {
  constexpr Clock::duration kNone{0};
  if (&group != window_.back().get() || in_.closed() || group.mode != GroupMode::together || group.barrier)
    return kNone;
  if (is_full(group)) return kNone;
  const std::chrono::microseconds delay{shared_.clock->unix_now().value -
                                        group.transactions.front()->commit_time.value};
  return std::max(kNone, tail_since_ + group_hold(delay, running_ > 0, in_steady_flow_) - Clock::now());
}

// In a steady flow what comes only makes a tail longer that waits for a group anyway. To be woken for each of it would
// cost more than the appliers that have nothing to do are worth: with hot keys, when each group waits for the one
// before.
Coordinator::Clock::duration Coordinator::patience(const Group& group) const {
  if (in_steady_flow_ && group.state == GroupState::waiting && !is_ready(group)) return kHoldWaitMax;
  return hold_left(group);
}

void Coordinator::measure_flow() {
  const auto now = Clock::now();
  const auto elapsed = now - flow_since_;
  if (elapsed < kFlowWindow) return;
  const uint64_t lcrs = in_.pushed_lcrs();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
  in_steady_flow_ = lcrs - flow_lcrs_ >= kFlowLcrsPerMs * static_cast<uint64_t>(millis);
  flow_since_ = now;
  flow_lcrs_ = lcrs;
}

// One look at everything that may have come. True: worth another one.
bool Coordinator::step() {
  bool moved = take_finished();
  if (shared_.ending()) return moved;
  moved = form_groups() || moved;
  return dispatch() || moved;
}

// Nothing is left to do now: how long the agent may sleep unless somebody has news; nothing where some came meanwhile.
std::optional<Coordinator::Clock::duration> Coordinator::rest() {
  const bool ending = shared_.ending();
  state_.set(window_.empty() ? "IDLE" : ending ? "SHUTTING DOWN CLEANLY" : "APPLYING");
  tell_idle_appliers();
  // A new transaction is news only when it could be put to use.
  const auto held = waiting_ > 0 && idle_appliers() > 0 ? patience(*window_.back()) : Clock::duration{0};
  const bool wants = !ending && has_room() && held.count() == 0 && (waiting_ == 0 || idle_appliers() > 0);
  in_.want(wants);
  if (wants && waiting_ == 0 && in_.peek() != nullptr) return std::nullopt;
  time_.enter(window_.empty() ? Activity::idle : Activity::execute);
  const bool watches = running_ > 0 && shared_.parameters.commit_serialization.load(std::memory_order_relaxed) ==
                                           CommitSerialization::full;
  // What is held while others run goes when one of them ends: no need to be on time beside that, unless it may become
  // full, and begin beside them, at any moment.
  if (held.count() > 0) {
    if (running_ == 0) return std::min<Clock::duration>(held, kHoldWaitMax);
    return in_steady_flow_ ? Clock::duration(kHoldWaitMax) : Clock::duration(kOthersRunWait);
  }
  return watches ? Clock::duration(kWatchPause) : Clock::duration(kIdleWait);
}

// While little comes the agent is not woken: that would be two more waits for a processor on a change's way. Whatever
// is out of the ordinary is the agent's.
bool Coordinator::take_news() {
  if (!baton_.take()) return true;
  bool done = false;
  do {
    done = handle_news();
  } while (!baton_.let_go());
  return done;
}

bool Coordinator::handle_news() {
  if (shared_.ending() || in_.closed() || in_.waiting_lcrs() > kNewsLcrsMax ||
      shared_.reload_parked.load(std::memory_order_acquire))
    return false;
  time_.enter(Activity::busy);
  measure_flow();
  std::optional<Clock::duration> wait;
  while (!wait) {
    while (step()) continue;
    wait = rest();
  }
  return Clock::now() + *wait >= wakes_at_;
}

// Whoever has news meanwhile does the work. While something comes the agent wakes by itself so often that nobody has to
// wake it for a group that is held.
void Coordinator::sleep(uint32_t ticket, Clock::duration wait) {
  const uint64_t lcrs = in_.pushed_lcrs();
  if (lcrs != lcrs_when_woken_) wait = std::min<Clock::duration>(wait, kOthersRunWait);
  lcrs_when_woken_ = lcrs;
  wakes_at_ = Clock::now() + wait;
  if (baton_.let_go()) {
    do {
      shared_.coordinator_bell.wait(ticket, std::chrono::ceil<std::chrono::microseconds>(wait));
      ticket = shared_.coordinator_bell.ticket();
      wait = kOthersRunWait;  // rung by whoever has the baton, if that cannot do it all
    } while (!baton_.take());
  }
  time_.enter(Activity::busy);
}

void Coordinator::run() {
  baton_.take();  // nobody else knows of it
  time_.enter(Activity::busy);
  fit_appliers();
  shared_.coordinator.store(this, std::memory_order_release);  // from here on others may do its work
  while (true) {
    const uint32_t ticket = shared_.coordinator_bell.ticket();
    measure_flow();
    show_transactions(Clock::now());
    if (!shared_.ending()) {
      fit_appliers();
      if (shared_.reload_parked.load(std::memory_order_acquire)) reload_parked();
    }
    const bool closed = in_.closed();  // before the look at what is left
    const bool moved = step();
    if (shared_.ending() && running_ == 0) break;
    if (closed && in_.peek() == nullptr && window_.empty()) {
      if (in_.failure()) shared_.error.set(*in_.failure());
      break;
    }
    resolve_commit_order_deadlock();
    if (moved) continue;
    if (const auto wait = rest()) sleep(ticket, *wait);
  }
  state_.set(shared_.error.is_set() ? "ABORTING" : "SHUTTING DOWN CLEANLY");
  shared_.commits_ended.store(true, std::memory_order_release);
  shared_.stop();
  for (int i = 0; i < applier_count(); ++i) appliers_[static_cast<size_t>(i)]->ring();
  ended_.store(true, std::memory_order_release);
}

void SharedState::tell_coordinator() {
  Coordinator* const there = coordinator.load(std::memory_order_acquire);
  if (there == nullptr || !there->take_news()) coordinator_bell.ring();
}

bool Coordinator::take_finished() {
  bool any = false;
  for (int i = 0; i < applier_count(); ++i) {
    const auto at = static_cast<size_t>(i);
    while (Group* const group = appliers_[at]->take_finished()) {
      // Given up, not told to: something that no key shows stands between them, and may stay, such as a table that is
      // altered.
      if (beside_[at] && group->error) rests_until_ = Clock::now() + kBesideRest;
      beside_[at] = false;
      if (group == busy_with_[at]) {
        busy_with_[at] = behind_[at];
        busy_since_[at] = Clock::now();
      }
      behind_[at] = nullptr;
      --running_;
      any = true;
      finish(*group);
    }
  }
  if (any) {
    settle();
    advance();
  }
  return any;
}

void Coordinator::finish(Group& group) {
  if (!group.error) {
    group.state = GroupState::committed;
    uint64_t parked = 0;
    for (const auto& transaction : group.transactions) {
      if (!transaction->parked_with) continue;
      parked_.add(transaction->hashes());
      ++parked;
    }
    transactions_.add(group.transactions.size() - parked);
    errors_.add(parked);
    if (parked > 0) shared_.parked.fetch_add(parked, std::memory_order_relaxed);
    return;
  }
  group.state = GroupState::waiting;
  ++waiting_;
  const base::Error error = *group.error;
  const bool again =
      group.mode == GroupMode::together && (is_about_data(error.code) || error.code == ErrorCode::database_busy);
  if (again) {
    // Once everything before it has committed, what fails again fails by itself.
    retried_groups_.add();
    if (error.code != ErrorCode::database_busy || group.after == group.number - 1) group.mode = GroupMode::singly;
    group.after = group.number - 1;
    base::log_event(base::LogLevel::debug, "group_retried",
                    {{"stream", shared_.stream_id}, {"group", group.number}, {"reason", error.message}});
    return;
  }
  if (error.code == ErrorCode::engine_stopping) return;
  errors_.add();
  shared_.error.set(error);
  shared_.stop();
}

void Coordinator::advance() {
  uint64_t low_watermark = shared_.low_watermark.load(std::memory_order_relaxed);
  uint64_t committed = 0;
  while (!window_.empty() && window_.front()->state == GroupState::committed) {
    Group& group = *window_.front();
    committed_through_ = group.number;
    low_watermark = std::max(low_watermark, group.covers_until.value);
    committed += group.transactions.size();
    window_.pop_front();
  }
  oldest_commit_time_.store(window_.empty() ? 0 : window_.front()->transactions.front()->commit_time.value,
                            std::memory_order_relaxed);
  if (committed == 0) return;
  shared_.low_watermark.store(low_watermark, std::memory_order_release);
  finish_markers();
  shared_.commits.store(shared_.commits.load(std::memory_order_relaxed) + committed, std::memory_order_release);
  shared_.committed_through.store(committed_through_, std::memory_order_release);
  for (int i = 0; i < applier_count(); ++i) {
    if (appliers_[static_cast<size_t>(i)]->waits_for_turn()) appliers_[static_cast<size_t>(i)]->ring();
  }
}

// PROGRESS, and transactions of which nothing is left: they only move the low watermark.
void Coordinator::skip_empty() {
  while (in_.peek() != nullptr && in_.peek()->empty()) {
    const auto transaction = in_.pop();
    if (Group* const last = tail()) {
      last->covers_until = std::max(last->covers_until, transaction->end_lsn);
    } else if (transaction->end_lsn.value > shared_.low_watermark.load(std::memory_order_relaxed)) {
      shared_.low_watermark.store(transaction->end_lsn.value, std::memory_order_release);
    }
    if (transaction->commit_time.value == 0) continue;  // PROGRESS
    markers_dispatched_.note({transaction->commit_lsn, transaction->commit_time, shared_.clock->unix_now()});
    if (markers_.size() < kMarkersMax) {
      markers_.push_back({transaction->commit_lsn, transaction->end_lsn, transaction->commit_time});
    }
    finish_markers();
  }
}

void Coordinator::finish_markers() {
  const uint64_t low_watermark = shared_.low_watermark.load(std::memory_order_relaxed);
  while (!markers_.empty() && markers_.front().end_lsn.value <= low_watermark) {
    const Marker& marker = markers_.front();
    const base::UnixMicros now = shared_.clock->unix_now();
    markers_committed_.note({marker.commit_lsn, marker.commit_time, now});
    marker_latency_.record(std::chrono::microseconds(std::max<int64_t>(0, now.value - marker.commit_time.value)));
    markers_.pop_front();
  }
}

void Coordinator::begin_group() {
  auto group = std::make_unique<Group>();
  group->number = next_number_++;
  // A barrier waits for all before it; all after it wait for it.
  if (Group* const last = tail(); last != nullptr && (last->barrier || in_.peek()->barrier))
    group->after = last->number;
  else if (last != nullptr)
    group->after = last->after_barrier;
  group->after_barrier = group->after;
  window_.push_back(std::move(group));
  ++waiting_;
  groups_.add();
  tail_since_ = Clock::now();
}

void Coordinator::add(Group& group, std::unique_ptr<Transaction> transaction) {
  const TransactionHashes hashes = transaction->hashes();
  Dependencies found;
  found.predecessors.swap(group.predecessors);
  found.contested.swap(group.contested);
  const bool independent = found.predecessors.empty();
  dependencies_.find(hashes, committed_through_, group.number, found);
  if (independent && !found.none()) dependent_groups_.add();
  found.predecessors.swap(group.predecessors);
  found.contested.swap(group.contested);
  group.waits_whole = group.waits_whole || found.waits_whole;
  group.after = std::max(group.after, found.after);
  dependencies_.note(hashes, committed_through_, group.number);
  group.lcrs += transaction->lcrs;
  group.bytes += transaction->bytes;
  group.barrier = group.barrier || transaction->barrier;
  group.covers_until = transaction->end_lsn;
  group.transactions.push_back(std::move(transaction));
}

// The tail group grows as long as it waits for something. Where little comes, a transaction that could run at once
// does; in a steady flow full groups are worth more than a second applier.
bool Coordinator::add_to_tail() {
  Group* const last = tail();
  const Transaction& next = *in_.peek();
  if (last == nullptr || last->state != GroupState::waiting || last->mode != GroupMode::together || last->barrier ||
      next.barrier)
    return false;
  if (last->lcrs + next.lcrs > shared_.parameters.group_size.load(std::memory_order_relaxed) ||
      last->bytes + next.bytes > kGroupBytesMax)
    return false;
  if (!in_steady_flow_ && !is_ready(*last) && idle_appliers() > 0) {
    Dependencies found;
    dependencies_.find(next.hashes(), committed_through_, 0, found);
    if (found.none()) return false;
  }
  add(*last, in_.pop());
  return true;
}

bool Coordinator::form_groups() {
  bool any = false;
  while (true) {
    skip_empty();
    if (in_.peek() == nullptr) return any;
    if (!add_to_tail()) {
      if (waiting_ >= static_cast<uint64_t>(usable_) + kWaitingGroupsOver || !has_room()) return any;
      // What is there goes out before more is formed: a group of one where nobody waits.
      if (waiting_ > 0 && dispatch()) {
        any = true;
        continue;
      }
      begin_group();
      add(*window_.back(), in_.pop());
    }
    any = true;
  }
}

// The error queue was changed: what is parked is read again, with nothing on its way there.
void Coordinator::reload_parked() {
  if (running_ > 0) return;
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
  parked_ = std::move(*loaded);
  shared_.parked.store(count, std::memory_order_relaxed);
}

// With commit_serialization full, later groups that have executed wait for the oldest one to commit. It may need what
// they hold: an applier, when there are fewer now than when it was dispatched, or a lock, directly or by way of others
// that wait for one. The server sees no deadlock in either.
void Coordinator::resolve_commit_order_deadlock() {
  const auto now = Clock::now();
  if (running_ < 1 || window_.empty() || now - watched_at_ < kWatchPause) return;
  const Group& oldest = *window_.front();
  const int count = applier_count();
  int runs_oldest = -1;
  Applier* latest = nullptr;  // of those that wait for their turn
  uint64_t latest_number = 0;
  for (int i = 0; i < count; ++i) {
    const Group* const group = busy_with_[static_cast<size_t>(i)];
    if (group == nullptr) continue;
    Applier& applier = *appliers_[static_cast<size_t>(i)];
    if (group == &oldest) runs_oldest = i;
    if (i < usable_ && applier.waits_for_turn() && group->number > latest_number) {
      latest = &applier;
      latest_number = group->number;
    }
  }
  watched_at_ = now;
  if (oldest.state == GroupState::waiting && is_ready(oldest) && idle_appliers() == 0 && latest != nullptr) {
    latest->request_rollback();
  }
  if (runs_oldest >= 0) give_locks_back(*appliers_[static_cast<size_t>(runs_oldest)]);
}

void Coordinator::give_locks_back(const Applier& blocked) {
  const int count = applier_count();
  const auto waits = [this](int i) { return appliers_[static_cast<size_t>(i)]->waits_for_turn(); };
  if (std::ranges::none_of(std::views::iota(0, count), waits)) return;
  const ActivityScope network(time_, Activity::network);
  if (!watch_ || watch_->broken()) {
    auto opened = pg::Connection::open(shared_.destination_conninfo, shared_.connect_options("coordinator"));
    if (!opened) return;  // the appliers will notice a destination that is gone
    watch_.emplace(std::move(*opened));
  }
  const auto blockers = watch_->query(
      "WITH RECURSIVE blocker(pid) AS (SELECT unnest(pg_catalog.pg_blocking_pids($1::integer)) UNION "
      "SELECT unnest(pg_catalog.pg_blocking_pids(pid)) FROM blocker) SELECT pid FROM blocker",
      {std::to_string(blocked.backend_pid())});
  if (!blockers) return;
  for (size_t row = 0; row < blockers->size(); ++row) {
    for (int i = 0; i < count; ++i) {
      Applier& applier = *appliers_[static_cast<size_t>(i)];
      if (applier.backend_pid() == blockers->integer(row, 0) && applier.waits_for_turn()) applier.request_rollback();
    }
  }
}

// So that an applier without work shows why: nothing there, or nothing that may run yet.
void Coordinator::tell_idle_appliers() {
  waiting_groups_.set(waiting_);
  uint64_t blocked = 0;
  for (const auto& group : window_) blocked += group->state == GroupState::waiting && !is_ready(*group) ? 1 : 0;
  for (int i = 0; i < usable_; ++i) {
    if (busy_with_[static_cast<size_t>(i)] != nullptr) continue;
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
                   {"errors", errors_.get()}},
      .gauges = {{"waiting_groups", static_cast<int64_t>(waiting_groups_.get())}, {"low_watermark_lag_us", lag}}};
  if (const auto latency = markers_committed_.latency_micros()) out.gauges.emplace_back("marker_latency_us", *latency);
  return out;
}

}  // namespace thalweg::apply
