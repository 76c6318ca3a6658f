#include "apply/applier/solo_run.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "apply/applier/parking.h"
#include "apply/data_error.h"
#include "base/log.h"
#include "metadata/destination_version.h"

namespace thalweg::apply {

using base::ErrorCode;
using telemetry::Activity;
using telemetry::ActivityScope;
using Before = CoordinatorSignals::Before;

namespace {

constexpr std::string_view kDeadlockDetected = "40P01";
const std::string kBegin = "BEGIN";
const std::string kCommit = "COMMIT";
const std::string kRollback = "ROLLBACK";

// The group up to this transaction, when all before it have committed. One range, however many they are: the progress
// is written with each of them.
LsnRange range_up_to(const Transaction& transaction, const Group& group) {
  return {.first = group.transactions.front()->commit_lsn, .end = transaction.end_lsn};
}

}  // namespace

base::Result<void> SoloRun::execute(Group& group) {
  if (parts_.shared.error.is_set() || parts_.shared.abandon.load(std::memory_order_relaxed)) {
    return base::fail(ErrorCode::engine_stopping, "apply ends");
  }
  return group.mode == GroupMode::together ? execute_together(group) : execute_singly(group);
}

base::Result<void> SoloRun::roll_back() {
  DestinationSession& session = *parts_.session;
  parts_.state.set("ROLLBACK TRANSACTION");
  // After a failure the server skips everything up to the next sync, a ROLLBACK too. Without one the sync would commit
  // what was sent without BEGIN.
  if (session.unsynced() > 0) {
    THALWEG_TRY(session.run(kRollback));
    THALWEG_TRY(session.sync());
  }
  THALWEG_TRY(session.run(kRollback));
  THALWEG_TRY(session.sync());
  return {};
}

bool SoloRun::await_turn(const Group& group) {
  if (parts_.is_turn(group)) return true;
  CoordinatorSignals& signals = parts_.signals;
  parts_.state.set("WAIT COMMIT");
  const ActivityScope waiting(parts_.time, Activity::commit_order);
  signals.rollback_requested.store(false, std::memory_order_relaxed);
  signals.waits_for_turn.store(true, std::memory_order_release);
  bool turn = false;
  while (!turn) {
    turn = parts_.is_turn(group);
    if (turn || parts_.shared.ending() || signals.rollback_requested.load(std::memory_order_relaxed)) break;
    signals.wake.wait(parts_.shared.policy.idle_wait);
  }
  signals.waits_for_turn.store(false, std::memory_order_release);
  return turn;
}

base::Result<void> SoloRun::await_settled() {
  CoordinatorSignals& signals = parts_.signals;
  parts_.state.set("WAIT DEPENDENCY");
  const ActivityScope waiting(parts_.time, Activity::dependency);
  const base::Clock& clock = *parts_.shared.clock;
  const auto patience = parts_.shared.policy.beside_patience;
  const auto begun = clock.steady_now();
  Before before = Before::open;
  while (true) {
    before = signals.before.load(std::memory_order_acquire);
    if (before != Before::open || parts_.shared.ending() || signals.rollback_requested.load(std::memory_order_relaxed))
      break;
    signals.wake.wait(patience);
    if (clock.steady_now() - begun >= patience) signals.waits_for_turn.store(true, std::memory_order_release);
  }
  signals.waits_for_turn.store(false, std::memory_order_release);
  parts_.state.set("EXECUTE TRANSACTION");
  if (before == Before::committed) return {};
  if (before == Before::open && !parts_.shared.ending()) parts_.counts.deadlocks.add();
  return base::fail(ErrorCode::database_busy, "rolled back to be executed after transactions that it depends on");
}

base::Result<Refusal> SoloRun::commit(LsnRange range) {
  DestinationSession& session = *parts_.session;
  ProgressWriter& progress = lane().progress;
  THALWEG_TRY(progress.send(session, range));
  THALWEG_TRY(session.run(session.prepared(kCommit, {}), {}, {.any = true}));
  const ActivityScope committing(parts_.time, Activity::commit);
  THALWEG_ASSIGN(Refusal refusal, session.sync());
  if (!refusal) progress.committed();
  return refusal;
}

// Found by the server. Deadlocks that the coordinator finds are counted where this applier gives way.
void SoloRun::count_deadlock(const base::Error& error) {
  if (error.sqlstate == kDeadlockDetected) parts_.counts.deadlocks.add();
}

void SoloRun::refuse(Group& group, base::Error error) {
  parts_.counts.fallbacks.add();
  group.run.error = std::move(error);
}

base::Result<void> SoloRun::leave_data_layer(StatementFailure& failure) {
  if (failure.error.code == ErrorCode::database_busy) return {};  // comes again as it is
  const std::string_view sqlstate = failure.error.sqlstate;
  bool leaves = is_refused(sqlstate);
  if (!leaves && may_be_gone(sqlstate)) {
    THALWEG_ASSIGN(const bool answers, answers_calls(*parts_.session));
    leaves = !answers;
  }
  if (leaves) {
    parts_.has_data_layer.store(false, std::memory_order_relaxed);
    base::log_event(
        base::LogLevel::warning, "data_layer_unusable",
        {{"stream", parts_.shared.stream_id}, {"applier", int64_t{parts_.number}}, {"reason", failure.error.message}});
  }
  failure.error.code = ErrorCode::apply_failed;
  return {};
}

base::Result<bool> SoloRun::is_outdated(Lane& lane, const base::Error& error) {
  if (error.code != ErrorCode::destination_table_differs && !metadata::is_schema_change(error.sqlstate)) return false;
  return lane.tables.have_changed();
}

base::Result<void> SoloRun::execute_together(Group& group) {
  DestinationSession& session = *parts_.session;
  GroupExecutor& executor = *lane().executor;
  executor.use_data_layer(parts_.uses_data_layer());
  THALWEG_TRY(session.run(session.prepared(kBegin, {}), {}, {.any = true}));
  Refusal refusal;
  {
    const ActivityScope executing(parts_.time, Activity::execute);
    GroupExecutor::Settle settle;
    if (parts_.signals.before.load(std::memory_order_acquire) != Before::committed)
      settle = [this] { return await_settled(); };
    THALWEG_ASSIGN(refusal, executor.execute_together(group, settle));
  }
  if (!refusal && !await_turn(group)) {
    THALWEG_TRY(roll_back());
    if (!parts_.shared.ending()) parts_.counts.deadlocks.add();
    group.run.error = base::fail(ErrorCode::database_busy, "rolled back to let an earlier transaction commit").error();
    return {};
  }
  if (!refusal) {
    THALWEG_ASSIGN(refusal, commit(group.range()));
  }
  if (refusal) return take_refusal(lane(), *refusal);
  parts_.count_committed(lane());
  return {};
}

base::Result<void> SoloRun::take_refusal(Lane& lane, StatementFailure& failure) {
  if (parts_.session->broken()) return std::unexpected(failure.error);
  if (failure.own_row_missing) return std::unexpected(taken_over(parts_.shared.stream_id));
  THALWEG_TRY(roll_back());
  count_deadlock(failure.error);
  // It comes again singly, and finds the new metadata.
  THALWEG_ASSIGN(const bool outdated, is_outdated(lane, failure.error));
  if (failure.below_sql && outdated) {
    failure.error.code = ErrorCode::apply_failed;
  } else if (failure.below_sql) {
    THALWEG_TRY(leave_data_layer(failure));
  }
  refuse(*lane.group, final_error(failure, *lane.group->transactions.front()));
  return {};
}

base::Result<Refusal> SoloRun::execute_one(const Transaction& transaction, ConflictResolver* resolver) {
  DestinationSession& session = *parts_.session;
  THALWEG_TRY(session.run(session.prepared(kBegin, {}), {}, {.any = true}));
  GroupExecutor& executor = *lane().executor;
  Refusal refusal;
  {
    const ActivityScope executing(parts_.time, Activity::execute);
    auto executed = resolver == nullptr ? executor.execute_rows(transaction)
                                        : executor.execute_rows(transaction, [&](const GroupExecutor::FailedRow& row) {
                                            return resolver->settle(row);
                                          });
    if (!executed && !is_about_data(executed.error().code)) return std::unexpected(executed.error());
    // A value that does not fit the destination's type is the data's fault, like what the server refuses.
    refusal = executed ? *executed : Refusal(StatementFailure{.error = executed.error()});
  }
  return end_one(transaction, std::move(refusal));
}

base::Result<Refusal> SoloRun::park_one(const Transaction& transaction, const base::Error& why,
                                        const ParkedConflict* conflict) {
  DestinationSession& session = *parts_.session;
  THALWEG_TRY(session.run(session.prepared(kBegin, {}), {}, {.any = true}));
  Refusal refusal;
  {
    const ActivityScope executing(parts_.time, Activity::execute);
    THALWEG_ASSIGN(refusal, park(session, parts_.shared.stream_id, transaction, why));
    if (!refusal && conflict != nullptr) {
      ConflictResolver log(session, *lane().executor, parts_.shared.parameters.errors, parts_.shared.stream_id,
                           transaction);
      THALWEG_ASSIGN(const bool is_logged, log.log_parked(*conflict, why));
      if (!is_logged) {
        base::log_event(base::LogLevel::warning, "conflict_not_logged",
                        {{"stream", parts_.shared.stream_id}, {"xid", int64_t{transaction.xid.value}}});
      }
    }
  }
  return end_one(transaction, std::move(refusal));
}

base::Result<Refusal> SoloRun::end_one(const Transaction& transaction, Refusal refusal) {
  DestinationSession& session = *parts_.session;
  if (!refusal) {
    THALWEG_ASSIGN(refusal, commit(range_up_to(transaction, *lane().group)));
  }
  if (!refusal) return refusal;
  if (session.broken()) return std::unexpected(refusal->error);
  if (refusal->own_row_missing) return std::unexpected(taken_over(parts_.shared.stream_id));
  THALWEG_TRY(roll_back());
  count_deadlock(refusal->error);
  lane().executor->reset();
  return refusal;
}

// Every group before this one has committed, so what fails here fails for good, but for other sessions' locks.
base::Result<void> SoloRun::execute_singly(Group& group) {
  const base::Clock& clock = *parts_.shared.clock;
  const SchedulePolicy& policy = parts_.shared.policy;
  GroupExecutor& executor = *lane().executor;
  ParkedSet parked;
  const LiveErrorPolicies& policies = parts_.shared.parameters.errors;
  auto pause = policy.lock_first_pause;
  int tries = 0;
  // The rows that fail: those of a transaction that has failed, and then of the group's next ones, too, in their first
  // attempt: where others write, conflicts come in numbers.
  bool settles = false;
  std::optional<ParkedConflict> conflict;  // of the transaction that is to be parked next
  while (group.run.done < group.transactions.size()) {
    Transaction& transaction = *group.transactions[group.run.done];
    parts_.state.set("EXECUTE TRANSACTION");
    std::optional<base::Error> why = transaction.parked_with;
    if (!why && (transaction.park_behind || parked.shares(transaction.hashes()))) {
      why = base::fail(ErrorCode::parked_behind, "parked behind a transaction that changed the same rows").error();
    }
    std::optional<ConflictResolver> resolver;
    if (settles) resolver.emplace(*parts_.session, executor, policies, parts_.shared.stream_id, transaction);
    THALWEG_ASSIGN(const Refusal refusal, why ? park_one(transaction, *why, conflict ? &*conflict : nullptr)
                                              : execute_one(transaction, resolver ? &*resolver : nullptr));
    if (!refusal) {
      conflict.reset();
      if (why) {
        transaction.parked_with = why;
        parked.add(transaction.hashes());
      } else {
        parts_.counts.committed(transaction, clock.unix_now());
        parts_.counts.take(executor, clock.unix_now());
        if (resolver) parts_.counts.take(resolver->conflicts());
      }
      executor.reset();
      ++group.run.done;
      tries = 0;
      pause = policy.lock_first_pause;
      continue;
    }
    THALWEG_ASSIGN(const bool outdated, is_outdated(lane(), refusal->error));
    if (outdated && !parts_.shared.ending()) {
      lane().tables.release();
      continue;
    }
    base::Error error = final_error(*refusal, transaction);
    if (error.code == ErrorCode::database_busy && ++tries < policy.lock_tries_max && !parts_.shared.ending()) {
      const ActivityScope waiting(parts_.time, Activity::lock);
      parts_.signals.wake.wait(pause);
      pause *= 2;
      continue;
    }
    if (why || !is_about_data(error.code)) {
      if (conflict) transaction.parked_with.reset();  // it is found again, for the log
      group.run.error = std::move(error);
      return {};
    }
    if (!settles && ConflictResolver::may_settle(policies, *refusal, transaction)) {
      settles = true;
      continue;
    }
    const ErrorDecision decision = policies.decide(error, transaction.retries);
    settles = false;
    if (const auto kind = conflict_of(*refusal, error); kind && decision.action != ErrorAction::retry) {
      const std::array counted{ConflictResolver::Settled{.table = refusal->table, .kind = *kind}};
      parts_.counts.take(counted);
    }
    if (decision.action == ErrorAction::park) {
      if (const auto kind = conflict_of(*refusal, error)) {
        conflict = {.failure = *refusal, .change = executor.failed_change(), .kind = *kind};
      }
      transaction.parked_with = std::move(error);  // comes round again, to be parked
      transaction.failure = {.change = executor.failed_change(), .named = refusal->named};
      continue;
    }
    if (decision.action == ErrorAction::retry) {
      ++transaction.retries;
      transaction.retries_most = decision.times;
      group.run.retry_in = decision.delay;
    }
    if (decision.action == ErrorAction::stop && transaction.retries > 0) {
      error.retries = transaction.retries;
      error.message +=
          error.retries == 1 ? "; retried once before" : fmt::format("; retried {} times before", error.retries);
    }
    group.run.error = std::move(error);
    return {};
  }
  return {};
}

}  // namespace thalweg::apply
