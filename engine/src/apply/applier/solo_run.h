#pragma once

#include "apply/applier/applier_parts.h"
#include "apply/applier/conflict_resolver.h"
#include "base/error.h"

namespace thalweg::apply {

// Executes one group with the connection to itself, waiting for whatever it takes: a group that is too large for a
// round trip, one that did not commit, or one whose transactions come one by one. Owner: the applier's thread, with its
// baton.
class SoloRun {
 public:
  explicit SoloRun(ApplierParts& parts) : parts_(parts) {}

  // group.run.error says whether it has committed. A failed result is of the connection, or ends apply.
  base::Result<void> execute(Group& group);
  // Rolls back a refused group that was sent in one round trip, and says in its error what that means.
  base::Result<void> take_refusal(Lane& lane, StatementFailure& failure);
  base::Result<void> roll_back();

 private:
  Lane& lane() { return parts_.lanes.front(); }
  base::Result<void> execute_together(Group& group);
  base::Result<void> execute_singly(Group& group);
  // `resolver`: settles rows that fail; null: the first one that does fails the transaction.
  base::Result<Refusal> execute_one(const Transaction& transaction, ConflictResolver* resolver);
  // `conflict`: of the transaction, for the conflict log; null: it is parked for another reason.
  base::Result<Refusal> park_one(const Transaction& transaction, const base::Error& why,
                                 const ParkedConflict* conflict);
  // Commits what was not refused, and rolls back what was.
  base::Result<Refusal> end_one(const Transaction& transaction, Refusal refusal);
  base::Result<Refusal> commit(LsnRange range);
  // False: roll back instead.
  bool await_turn(const Group& group);
  // Waits until the groups beside which this one was begun have committed. Fails with database_busy: roll back.
  base::Result<void> await_settled();
  void refuse(Group& group, base::Error error);
  void count_deadlock(const base::Error& error);
  // SQL decides what such a refusal means.
  base::Result<void> leave_data_layer(StatementFailure& failure);
  // Whether `error` comes of a table that has changed at the destination: worth another try, with its new metadata.
  base::Result<bool> is_outdated(Lane& lane, const base::Error& error);

  ApplierParts& parts_;
};

}  // namespace thalweg::apply
