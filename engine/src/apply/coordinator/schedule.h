#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "apply/coordinator/dependency_table.h"
#include "apply/coordinator/schedule_policy.h"
#include "apply/parameters.h"
#include "apply/parked_set.h"
#include "apply/transaction.h"

// Decides which transactions form a group, which applier runs which group, and when, without clocks, threads or
// connections. Transactions, completions and the time come in; assignments and the next deadline go out.

namespace thalweg::apply {

using ScheduleClock = std::chrono::steady_clock;

// The live parameters that the schedule goes by.
struct ScheduleLimits {
  int appliers = 1;              // that may be given groups: the first so many
  uint64_t group_lcrs = 1;       // LCRs that a group holds at most, unless its first transaction has more
  bool in_commit_order = false;  // commit_serialization is full
};

// The schedule's view of the world at one instant.
struct Moment {
  ScheduleClock::time_point now;
  base::UnixMicros unix_now;  // beside the commit times of the source: how late a group is
  bool steady_flow = false;   // FlowMeter
  bool more_comes = true;     // the reader has not ended
  bool standstill = false;    // nothing shall run soon, for set_parked
};

// The groups of one applier.
struct ApplierSlot {
  Group* running = nullptr;
  Group* behind = nullptr;          // sent behind it on the same connection
  ScheduleClock::time_point since;  // the running group is at the server
  bool beside = false;              // it was begun before all that it depends on had committed
  uint64_t solo_lcrs = 0;           // Group::goes_in_one_round_trip(), with this applier
  bool idle() const { return running == nullptr; }
};

struct Assignment {
  int applier = 0;  // from 0
  Group* group = nullptr;
  bool beside = false;  // not all that it depends on has committed
};

// The fate of the groups that a group began beside.
struct Settlement {
  int applier = 0;
  bool committed = false;  // false: roll back
};

enum class Admission : uint8_t {
  joins_last_group,
  begins_group,
  no_room,  // until something has completed
};

enum class Completion : uint8_t {
  committed,
  again,      // later, behind all before it
  postponed,  // its transaction that failed is to be retried after a while
  stopping,   // the applier gave up because apply ends
  failed,     // for good: apply ends with the group's error
};

// The time at which something has to be decided without news, and what is news until then.
struct NextLook {
  ScheduleClock::duration in{};
  bool takes_more = false;  // a further transaction could be put to use now
};

// Owner: the holder of the coordinator's baton.
class Schedule {
 public:
  // Everything that ends at or before `low_watermark` has committed.
  Schedule(base::Lsn low_watermark, ParkedSet parked, SchedulePolicy policy = {});

  void set_limits(const ScheduleLimits& limits);
  // `lcrs`: Applier::solo_lcrs(). A value that is out of date costs time only.
  void set_solo_lcrs(int applier, uint64_t lcrs) { slots_[static_cast<size_t>(applier)].solo_lcrs = lcrs; }
  // Call it with nothing running: the parked transactions were changed from outside.
  void set_parked(ParkedSet parked) { parked_ = std::move(parked); }

  // The place of the next transaction in commit order. It must not be empty. `awaits_retry`: it gets a group of its
  // own, because no other transaction should wait for its retry.
  Admission admission(const Transaction& next, const Moment& moment, bool awaits_retry = false) const;
  // Takes it as admission() has just returned; not with no_room. True: it is the first one of its group that depends on
  // another group.
  bool add(std::unique_ptr<Transaction> transaction, Admission admission, const Moment& moment);
  // A position, or a transaction of which nothing is left: only moves the low watermark.
  void cover(base::Lsn end);

  // The groups that may start now; for a standstill, only those that running ones wait for. They count as running;
  // valid until the next call.
  const std::vector<Assignment>& assign(const Moment& moment);
  // A group that `applier` had has ended, as its error says.
  Completion complete(int applier, Group& group, const Moment& moment);
  // Groups that began beside others whose fate completions have decided. Valid until the next call.
  const std::vector<Settlement>& settle();
  // No group waits for its retry any longer: the decision about their errors has changed.
  void retry_now();
  // After completions: forgets the groups at the window's beginning that have committed; how many transactions those
  // had. The groups are destroyed.
  uint64_t advance();
  // The time for which nothing can be assigned, at most.
  NextLook next_look(const Moment& moment) const;

  const SchedulePolicy& policy() const { return policy_; }
  const std::deque<std::unique_ptr<Group>>& window() const { return window_; }
  const ApplierSlot& slot(int applier) const { return slots_[static_cast<size_t>(applier)]; }
  int appliers() const { return limits_.appliers; }
  int running() const { return running_; }
  uint64_t waiting() const { return waiting_; }
  uint64_t blocked() const;  // waiting groups that may not run yet
  bool awaits_retry(const Group& group, const Moment& moment) const { return group.retry_at > moment.now; }
  // Whether nothing runs, and a group waits for its retry.
  bool awaits_only_retries(const Moment& moment) const;
  int idle_appliers() const;
  uint64_t committed_through() const { return committed_through_; }
  base::Lsn low_watermark() const { return low_watermark_; }
  bool is_ready(const Group& group) const;
  // The first group that a waiting one waits for.
  const Group& waits_for(const Group& group) const;
  std::optional<int> applier_of(const Group& group) const;

 private:
  bool joins_last(const Transaction& next, const Moment& moment) const;
  void begin_group(const Transaction& first, const Moment& moment);
  bool is_full(const Group& group) const;
  bool has_room() const;
  bool has_committed(uint64_t number) const;
  const Group& numbered(uint64_t number) const { return *window_[number - committed_through_ - 1]; }
  bool may_begin_beside(const Group& group, const Moment& moment) const;
  bool may_go_behind(const Group& group, const ApplierSlot& slot, const Moment& moment) const;
  std::optional<int> place_for(const Group& group, const Moment& moment) const;
  ScheduleClock::duration hold_left(const Group& group, const Moment& moment) const;
  ScheduleClock::duration patience(const Group& group, const Moment& moment) const;
  uint64_t awaited_through() const;
  void give(int applier, Group& group, bool beside, const Moment& moment);
  void mark_parked(Group& group) const;
  void take_note_of_parked(Group& group, size_t end);

  const SchedulePolicy policy_;
  ScheduleLimits limits_;
  base::Lsn low_watermark_;
  ParkedSet parked_;
  DependencyTable dependencies_;
  std::deque<std::unique_ptr<Group>> window_;  // by number, from the oldest uncommitted one
  uint64_t next_number_ = 1;
  uint64_t committed_through_ = 0;
  uint64_t waiting_ = 0;  // groups of the window that no applier has
  int running_ = 0;
  int slots_used_ = 0;  // the first so many have ever been used
  std::array<ApplierSlot, kAppliersMax> slots_;
  ScheduleClock::time_point last_group_since_;   // the last group was begun
  ScheduleClock::time_point none_beside_until_;  // no group is begun beside others
  std::vector<Assignment> assignments_;
  std::vector<Settlement> settlements_;
};

}  // namespace thalweg::apply
