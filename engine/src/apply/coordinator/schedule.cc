#include "apply/coordinator/schedule.h"

#include <algorithm>
#include <utility>

#include "apply/coordinator/group_hold.h"
#include "apply/data_error.h"

namespace thalweg::apply {

using base::ErrorCode;

Schedule::Schedule(base::Lsn low_watermark, ParkedSet parked, SchedulePolicy policy)
    : policy_(policy), low_watermark_(low_watermark), parked_(std::move(parked)) {
  assignments_.reserve(size_t{2} * kAppliersMax);
  settlements_.reserve(kAppliersMax);
  for (ApplierSlot& slot : slots_) slot.solo_lcrs = policy_.solo_lcrs_min;
}

void Schedule::set_limits(const ScheduleLimits& limits) {
  limits_ = limits;
  slots_used_ = std::max(slots_used_, limits.appliers);
}

int Schedule::idle_appliers() const {
  return static_cast<int>(std::count_if(slots_.begin(), slots_.begin() + limits_.appliers,
                                        [](const ApplierSlot& slot) { return slot.idle(); }));
}

bool Schedule::has_room() const {
  return window_.size() < static_cast<size_t>(limits_.appliers) * policy_.window_groups_per_applier;
}

bool Schedule::has_committed(uint64_t number) const {
  return number <= committed_through_ || numbered(number).state == GroupState::committed;
}

bool Schedule::is_ready(const Group& group) const {
  if (group.after > committed_through_) return false;
  return std::ranges::all_of(group.predecessors, [this](uint64_t number) { return has_committed(number); });
}

const Group& Schedule::waits_for(const Group& group) const {
  const auto open = std::ranges::find_if_not(group.predecessors, [this](uint64_t n) { return has_committed(n); });
  return open == group.predecessors.end() ? *window_.front() : numbered(*open);
}

uint64_t Schedule::blocked() const {
  return static_cast<uint64_t>(std::ranges::count_if(
      window_, [this](const auto& group) { return group->state == GroupState::waiting && !is_ready(*group); }));
}

bool Schedule::awaits_only_retries(const Moment& moment) const {
  return running_ == 0 && std::ranges::any_of(window_, [&](const auto& group) { return awaits_retry(*group, moment); });
}

std::optional<int> Schedule::applier_of(const Group& group) const {
  for (int i = 0; i < slots_used_; ++i) {
    if (slot(i).running == &group || slot(i).behind == &group) return i;
  }
  return std::nullopt;
}

bool Schedule::is_full(const Group& group) const {
  return group.lcrs >= limits_.group_lcrs || group.bytes >= policy_.group_bytes_max;
}

// How much longer a group that could run waits for company.
ScheduleClock::duration Schedule::hold_left(const Group& group, const Moment& moment) const {
  constexpr ScheduleClock::duration kNone{0};
  if (&group != window_.back().get() || !moment.more_comes || group.mode != GroupMode::together || group.barrier)
    return kNone;
  if (is_full(group)) return kNone;
  const std::chrono::microseconds delay{moment.unix_now.value - group.transactions.front()->commit_time.value};
  return std::max(kNone, last_group_since_ + group_hold(policy_, delay, running_ > 0, moment.steady_flow) - moment.now);
}

// In a steady flow, while the last group waits for a predecessor (as every group does with hot keys), new transactions
// only lengthen it. Waking for each of them costs more than an idle applier is worth.
ScheduleClock::duration Schedule::patience(const Group& group, const Moment& moment) const {
  if (moment.steady_flow && group.state == GroupState::waiting && !is_ready(group)) return policy_.held_wait_max;
  return hold_left(group, moment);
}

// The last group grows as long as it waits for something. Where little comes, a transaction that could run at once
// does; in a steady flow full groups are worth more than a second applier.
bool Schedule::joins_last(const Transaction& next, const Moment& moment) const {
  if (window_.empty() || next.barrier) return false;
  const Group& last = *window_.back();
  if (last.state != GroupState::waiting || last.mode != GroupMode::together || last.barrier) return false;
  if (last.lcrs + next.lcrs > limits_.group_lcrs || last.bytes + next.bytes > policy_.group_bytes_max) return false;
  if (moment.steady_flow || is_ready(last) || idle_appliers() == 0) return true;
  Dependencies found;
  dependencies_.find(next.hashes(), committed_through_, 0, found);
  return !found.none();
}

Admission Schedule::admission(const Transaction& next, const Moment& moment, bool awaits_retry) const {
  if (!awaits_retry && joins_last(next, moment)) return Admission::joins_last_group;
  const bool enough = waiting_ >= static_cast<uint64_t>(limits_.appliers) + policy_.waiting_groups_over;
  return enough || !has_room() ? Admission::no_room : Admission::begins_group;
}

void Schedule::begin_group(const Transaction& first, const Moment& moment) {
  auto group = std::make_unique<Group>();
  group->number = next_number_++;
  // A barrier waits for all before it; all after it wait for it.
  if (!window_.empty()) {
    const Group& last = *window_.back();
    group->after = last.barrier || first.barrier ? last.number : last.after_barrier;
  }
  group->after_barrier = group->after;
  window_.push_back(std::move(group));
  ++waiting_;
  last_group_since_ = moment.now;
}

bool Schedule::add(std::unique_ptr<Transaction> transaction, Admission admission, const Moment& moment) {
  if (admission == Admission::begins_group) begin_group(*transaction, moment);
  Group& group = *window_.back();
  const TransactionHashes hashes = transaction->hashes();
  Dependencies found;
  found.predecessors.swap(group.predecessors);
  found.contested.swap(group.contested);
  const bool independent = found.predecessors.empty();
  dependencies_.find(hashes, committed_through_, group.number, found);
  const bool first_dependent = independent && !found.none();
  found.predecessors.swap(group.predecessors);
  found.contested.swap(group.contested);
  group.waits_whole = group.waits_whole || found.waits_whole;
  group.after = std::max(group.after, found.after);
  dependencies_.note(hashes, committed_through_, group.number);
  group.lcrs += transaction->lcrs;
  group.bytes += transaction->bytes;
  group.barrier = group.barrier || transaction->barrier;
  group.covers_until = transaction->end_lsn;
  // Its group waits for the retry as it did when the earlier apply ended.
  if (transaction->retry_at > moment.now) {
    group.retry_at = transaction->retry_at;
    group.mode = GroupMode::singly;
    group.after = group.number - 1;
  }
  group.transactions.push_back(std::move(transaction));
  return first_dependent;
}

void Schedule::cover(base::Lsn end) {
  base::Lsn& covered = window_.empty() ? low_watermark_ : window_.back()->covers_until;
  covered = std::max(covered, end);
}

// While the groups that it depends on are executed, with rows that have nothing to do with theirs. Only where it would
// not grow meanwhile: large groups are worth more. With transactions parked each has to be looked at once all before it
// have ended.
bool Schedule::may_begin_beside(const Group& group, const Moment& moment) const {
  const uint64_t least = std::clamp(limits_.group_lcrs, policy_.beside_lcrs_floor, policy_.beside_lcrs_min);
  const auto beside = std::ranges::count_if(slots_, [](const ApplierSlot& slot) { return slot.beside; });
  if (group.waits_whole || group.barrier || group.mode != GroupMode::together || group.after > committed_through_ ||
      group.lcrs < least || beside >= policy_.beside_max || !parked_.empty() || moment.now < none_beside_until_ ||
      (&group == window_.back().get() && !is_full(group)))
    return false;
  return std::ranges::all_of(group.predecessors, [this](uint64_t number) {
    return has_committed(number) || numbered(number).state == GroupState::running;
  });
}

// A small group goes behind another on the same connection, without waiting for that one's end to be heard of here. It
// depends on nothing that has not committed, so either may fail without the other.
bool Schedule::may_go_behind(const Group& group, const ApplierSlot& slot, const Moment& moment) const {
  return !slot.idle() && slot.behind == nullptr && !slot.beside &&
         slot.running->goes_in_one_round_trip(slot.solo_lcrs) && group.goes_in_one_round_trip(slot.solo_lcrs) &&
         !moment.steady_flow && moment.now - slot.since < policy_.behind_wait && !limits_.in_commit_order;
}

// The applier that has a place for the group now: one without a group, or else one where it goes behind another. A
// group that is held back has the latter only: it goes without waiting, but wakes no other server process.
std::optional<int> Schedule::place_for(const Group& group, const Moment& moment) const {
  const bool held = hold_left(group, moment).count() > 0;
  for (int i = 0; i < limits_.appliers; ++i) {
    if (held ? is_ready(group) && may_go_behind(group, slot(i), moment) : slot(i).idle()) return i;
  }
  return std::nullopt;
}

void Schedule::mark_parked(Group& group) const {
  for (const auto& transaction : group.transactions) {
    if (transaction->parked_with || !parked_.shares(transaction->hashes())) continue;
    transaction->park_behind = true;
    group.mode = GroupMode::singly;
    group.after = group.number - 1;
  }
}

// No group that runs waits for a later one than this.
uint64_t Schedule::awaited_through() const {
  if (!limits_.in_commit_order) return committed_through_;
  const auto latest = std::find_if(window_.rbegin(), window_.rend(),
                                   [](const auto& group) { return group->state == GroupState::running; });
  return latest == window_.rend() ? committed_through_ : (*latest)->number;
}

const std::vector<Assignment>& Schedule::assign(const Moment& moment) {
  assignments_.clear();
  const uint64_t through = moment.standstill ? awaited_through() : next_number_;
  for (const auto& group : window_) {
    if (waiting_ == 0 || group->number > through) break;
    if (group->state != GroupState::waiting) continue;
    if (awaits_retry(*group, moment)) {
      if (limits_.in_commit_order) break;  // it would only keep its locks until its turn
      continue;
    }
    const bool beside = !is_ready(*group);
    if (beside && !may_begin_beside(*group, moment)) continue;
    if (!parked_.empty()) {
      mark_parked(*group);
      if (!is_ready(*group)) continue;
    }
    const auto applier = place_for(*group, moment);
    if (!applier && idle_appliers() == 0) break;
    if (applier) give(*applier, *group, beside, moment);
  }
  return assignments_;
}

void Schedule::give(int applier, Group& group, bool beside, const Moment& moment) {
  ApplierSlot& slot = slots_[static_cast<size_t>(applier)];
  group.state = GroupState::running;
  --waiting_;
  ++running_;
  if (slot.idle()) {
    slot.running = &group;
    slot.since = moment.now;
    slot.beside = beside;
  } else {
    slot.behind = &group;
  }
  assignments_.push_back({.applier = applier, .group = &group, .beside = beside});
}

Completion Schedule::complete(int applier, Group& group, const Moment& moment) {
  ApplierSlot& slot = slots_[static_cast<size_t>(applier)];
  // Given up, not told to: something that no key shows stands between them, and may stay, such as a table that is
  // altered.
  if (slot.beside && group.run.error) none_beside_until_ = moment.now + policy_.beside_pause;
  slot.beside = false;
  if (&group == slot.running) {
    slot.running = slot.behind;
    slot.since = moment.now;
  }
  slot.behind = nullptr;
  --running_;
  if (!group.run.error) {
    group.state = GroupState::committed;
    take_note_of_parked(group, group.transactions.size());
    return Completion::committed;
  }
  group.state = GroupState::waiting;
  ++waiting_;
  if (group.run.retry_in) {
    group.retry_at = moment.now + *group.run.retry_in;
    take_note_of_parked(group, group.run.done);
    // Meanwhile somebody may remove what they would be parked behind.
    for (size_t i = group.run.done; i < group.transactions.size(); ++i) group.transactions[i]->park_behind = false;
    return Completion::postponed;
  }
  const ErrorCode code = group.run.error->code;
  if (group.mode == GroupMode::together && (is_about_data(code) || code == ErrorCode::database_busy)) {
    // Next time everything before it has committed: what fails then fails by itself.
    if (code != ErrorCode::database_busy || group.after == group.number - 1) group.mode = GroupMode::singly;
    group.after = group.number - 1;
    return Completion::again;
  }
  return code == ErrorCode::engine_stopping ? Completion::stopping : Completion::failed;
}

void Schedule::take_note_of_parked(Group& group, size_t end) {
  for (; group.counted < end; ++group.counted) {
    const Transaction& transaction = *group.transactions[group.counted];
    if (transaction.parked_with) parked_.add(transaction.hashes());
  }
}

void Schedule::retry_now() {
  for (const auto& group : window_) group->retry_at = {};
}

const std::vector<Settlement>& Schedule::settle() {
  settlements_.clear();
  for (int i = 0; i < slots_used_; ++i) {
    ApplierSlot& slot = slots_[static_cast<size_t>(i)];
    if (!slot.beside) continue;
    const auto& before = slot.running->predecessors;
    const bool failed = !parked_.empty() || std::ranges::any_of(before, [this](uint64_t number) {
      return !has_committed(number) && numbered(number).state == GroupState::waiting;
    });
    const bool committed = std::ranges::all_of(before, [this](uint64_t number) { return has_committed(number); });
    if (!failed && !committed) continue;
    settlements_.push_back({.applier = i, .committed = !failed});
    slot.beside = false;
  }
  return settlements_;
}

uint64_t Schedule::advance() {
  uint64_t transactions = 0;
  while (!window_.empty() && window_.front()->state == GroupState::committed) {
    const Group& group = *window_.front();
    committed_through_ = group.number;
    low_watermark_ = std::max(low_watermark_, group.covers_until);
    transactions += group.transactions.size();
    window_.pop_front();
  }
  return transactions;
}

NextLook Schedule::next_look(const Moment& moment) const {
  const bool anybody = idle_appliers() > 0;
  const auto held = waiting_ > 0 && anybody ? patience(*window_.back(), moment) : ScheduleClock::duration{0};
  // A new transaction is news only when it could be put to use.
  const bool takes_more = has_room() && held.count() == 0 && (waiting_ == 0 || anybody);
  ScheduleClock::duration wait =
      running_ > 0 && limits_.in_commit_order ? ScheduleClock::duration(policy_.watch_pause) : policy_.idle_wait;
  if (held.count() > 0) {
    // A group that is held while others run is handed out when one of those ends. The timer need not be exact then,
    // unless the group may become full at any moment, and begin beside them.
    const bool on_time = running_ == 0 || moment.steady_flow;
    wait = on_time ? ScheduleClock::duration(policy_.held_wait_max) : policy_.others_run_wait;
    if (running_ == 0) wait = std::min(wait, held);
  }
  return {.in = wait, .takes_more = takes_more};
}

}  // namespace thalweg::apply
