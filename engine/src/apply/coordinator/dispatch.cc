#include <algorithm>

#include "apply/coordinator/coordinator.h"

// Which applier gets which group, and when.

namespace thalweg::apply {

namespace {

constexpr uint64_t kBesideLcrsMin = 16;              // a smaller group goes in one round trip, when it may;
constexpr uint64_t kBesideLcrsFloor = 4;             // where group_size makes all of them small
constexpr int kBesideMax = 1;                        // groups at a time: more get in each other's way
constexpr uint64_t kBehindLcrsMax = 100;             // go in one round trip, one behind the other,
constexpr std::chrono::milliseconds kBehindWait{1};  // unless the first takes long: it may wait for a lock

}  // namespace

// While the groups that it depends on are executed, with rows that have nothing to do with theirs. Only where it would
// not grow meanwhile: large groups are worth more. With transactions parked each has to be looked at once all before it
// have ended.
bool Coordinator::may_begin_beside(const Group& group) const {
  const uint64_t least = std::clamp<uint64_t>(shared_.parameters.group_size.load(std::memory_order_relaxed),
                                              kBesideLcrsFloor, kBesideLcrsMin);
  if (group.waits_whole || group.barrier || group.mode != GroupMode::together || group.after > committed_through_ ||
      group.lcrs < least || std::ranges::count(beside_, true) >= kBesideMax || !parked_.empty() ||
      Clock::now() < rests_until_ || (&group == window_.back().get() && !is_full(group)))
    return false;
  return std::ranges::all_of(group.predecessors, [this](uint64_t number) {
    return has_committed(number) || window_[number - committed_through_ - 1]->state == GroupState::running;
  });
}

// A small group goes behind another on the same connection, without waiting for that one's end to be heard of here. It
// depends on nothing that has not committed, so either may fail without the other.
bool Coordinator::may_go_behind(const Group& group, int applier) const {
  const auto at = static_cast<size_t>(applier);
  const Group* const first = busy_with_[at];
  const auto is_small = [](const Group& one) { return one.mode == GroupMode::together && one.lcrs <= kBehindLcrsMax; };
  return first != nullptr && behind_[at] == nullptr && !beside_[at] && is_small(*first) && is_small(group) &&
         !in_steady_flow_ && Clock::now() - busy_since_[at] < kBehindWait &&
         shared_.parameters.commit_serialization.load(std::memory_order_relaxed) != CommitSerialization::full;
}

// Which applier has a place for it now: one without a group, or else one where it goes behind another. What is held
// back has the latter only: it goes without waiting, but wakes no other server process.
std::optional<int> Coordinator::applier_for(const Group& group) const {
  const bool held = hold_left(group).count() > 0;
  if (!held) {
    for (int i = 0; i < usable_; ++i) {
      if (busy_with_[static_cast<size_t>(i)] == nullptr) return i;
    }
  }
  if (held && is_ready(group)) {
    for (int i = 0; i < usable_; ++i) {
      if (may_go_behind(group, i)) return i;
    }
  }
  return std::nullopt;
}

int Coordinator::applier_of(const Group& group) const {
  int applier = 0;
  while (busy_with_[static_cast<size_t>(applier)] != &group && behind_[static_cast<size_t>(applier)] != &group)
    ++applier;
  return applier;
}

// Tells groups that were begun beside others what became of those.
void Coordinator::settle() {
  for (int i = 0; i < applier_count(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (!beside_[at]) continue;
    const auto& before = busy_with_[at]->predecessors;
    const bool failed = !parked_.empty() || std::ranges::any_of(before, [this](uint64_t number) {
      return !has_committed(number) && window_[number - committed_through_ - 1]->state == GroupState::waiting;
    });
    const bool committed = std::ranges::all_of(before, [this](uint64_t number) { return has_committed(number); });
    if (!failed && !committed) continue;
    appliers_[at]->tell_settled(!failed);
    beside_[at] = false;
  }
}

void Coordinator::mark_parked(Group& group) {
  for (const auto& transaction : group.transactions) {
    if (!transaction->parked_with && parked_.shares(transaction->hashes())) {
      transaction->park_behind = true;
      group.mode = GroupMode::singly;
      group.after = group.number - 1;
    }
  }
}

bool Coordinator::dispatch() {
  bool any = false;
  if (shared_.reload_parked.load(std::memory_order_relaxed)) return false;
  for (const auto& group : window_) {
    if (group->state != GroupState::waiting) continue;
    const bool beside = !is_ready(*group);
    if (beside && !may_begin_beside(*group)) continue;
    if (!parked_.empty()) {
      mark_parked(*group);
      if (!is_ready(*group)) continue;
    }
    const auto applier = applier_for(*group);
    if (!applier && idle_appliers() == 0) return any;
    if (!applier) continue;
    const auto at = static_cast<size_t>(*applier);
    group->state = GroupState::running;
    --waiting_;
    ++running_;
    if (busy_with_[at] == nullptr) {
      busy_with_[at] = group.get();
      busy_since_[at] = Clock::now();
      beside_[at] = beside;
    } else {
      behind_[at] = group.get();
    }
    appliers_[at]->assign(group.get(), beside);
    any = true;
  }
  return any;
}

}  // namespace thalweg::apply
