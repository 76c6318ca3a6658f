#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apply/applier/destination_session.h"
#include "apply/applier/group_executor.h"
#include "apply/applier/tuple_values.h"
#include "apply/error_policy.h"
#include "apply/transaction.h"

// Settles single rows that cannot be applied, in the middle of their transaction, and records each in the destination's
// conflict log (docs/decisions/conflicts.md).

namespace thalweg::apply {

// The kind of the conflict; none for an error that is no conflict. `error`: the final one of the failure.
std::optional<ConflictKind> conflict_of(const StatementFailure& failure, const base::Error& error);

// Rights with which rows are written, if they are not the session's own: the log is not written with them.
struct OtherRights {
  std::function<base::Result<void>()> leave = {};
  std::function<base::Result<void>()> take = {};
};

// The change whose conflict has its transaction parked.
struct ParkedConflict {
  StatementFailure failure;
  uint64_t change = 0;  // its number in the transaction, from 1
  ConflictKind kind = ConflictKind::insert_exists;
};

// Settles conflicts in one attempt at one transaction. Owner: the applier's thread.
class ConflictResolver {
 public:
  ConflictResolver(DestinationSession& session, GroupExecutor& executor, const LiveErrorPolicies& policies,
                   const std::string& stream_id, const Transaction& transaction, OtherRights rights = {})
      : session_(session),
        executor_(executor),
        policies_(policies),
        stream_id_(stream_id),
        transaction_(transaction),
        rights_(std::move(rights)) {}

  // Whether a handler, of conflicts or of errors, or a policy settles the row that has failed, so that the transaction
  // is worth an attempt with settle(); or whether only that attempt can tell what is in the way.
  static bool may_settle(const LiveErrorPolicies& policies, const StatementFailure& failure,
                         const Transaction& transaction);

  // A GroupExecutor::SettleRow.
  base::Result<Refusal> settle(const GroupExecutor::FailedRow& row);

  // Writes a conflict for which the transaction is parked into the log, in the transaction that parks it. False: the
  // log does not take it, and nothing else is lost.
  base::Result<bool> log_parked(const ParkedConflict& conflict, const base::Error& why);

  // The conflicts that were settled, for the counts: of no use where the transaction has not committed.
  struct Settled {
    const metadata::TableMetadata* table;
    ConflictKind kind;
  };
  const std::vector<Settled>& conflicts() const { return conflicts_; }
  uint64_t settled() const { return settled_; }  // rows, whether they were conflicts or not

 private:
  // A row of the destination's; a value: NULL, or as the server writes it.
  using Texts = std::vector<std::optional<std::string>>;

  // Whether the row that was not found is there, locked then, and in which columns it has other values.
  base::Result<bool> look_for_row(const StatementFailure& failure, ColumnMask& differing, Refusal& refusal);
  // Whether there is a row of the identity in `old`; `differing`: of the columns `known` those with another value.
  // `refusal`: a lock that was not to be had, say.
  base::Result<bool> lock_row(const metadata::TableMetadata& table, const lcr::Value* old, const ColumnMask& known,
                              ColumnMask& differing, Refusal& refusal);
  // Whether there is a second row for the handlers, locked then; `again`: the change was made after all, or fails
  // otherwise now.
  base::Result<bool> lock_second_row(const GroupExecutor::FailedRow& row, std::optional<Refusal>& again);
  // Whether the handlers have made one row of both; `why` not, in words. `refusal`: of the transaction as a whole. The
  // second row is locked.
  base::Result<bool> combine(const GroupExecutor::FailedRow& row, std::span<const ConflictHandler> handlers,
                             const ColumnMask& differing, std::string& why, Refusal& refusal);
  // Whether the handlers of errors have taken the change's place; `why` not, in words. `refusal`: of the transaction as
  // a whole.
  base::Result<bool> replace(const GroupExecutor::FailedRow& row, const HandledError& failed, std::string& why,
                             Refusal& refusal);
  // Unique keys by which the row collides, each looked at for itself. `kind`: insert_exists or update_exists.
  base::Result<size_t> count_keys_met(const metadata::TableMetadata& table, const lcr::FrameView& frame,
                                      ConflictKind kind);
  // `general`, or that several keys are met.
  base::Result<std::optional<ConflictKind>> exact_kind(const metadata::TableMetadata& table,
                                                       const lcr::FrameView& frame,
                                                       std::optional<ConflictKind> general);
  base::Result<std::optional<Texts>> look_up(const metadata::TableMetadata& table, std::span<const uint16_t> by,
                                             const lcr::Value* values);
  base::Result<std::optional<Texts>> find_row(const metadata::TableMetadata& table, const lcr::FrameView& frame,
                                              std::optional<ConflictKind> kind);
  base::Result<void> record(const GroupExecutor::FailedRow& row, std::optional<ConflictKind> kind,
                            const base::Error& error, std::string_view action, const std::optional<Texts>& there);
  // `written`: by the server, as the columns' types; else as the bytes came. False: the server refuses.
  base::Result<bool> try_to_record(const GroupExecutor::FailedRow& row, std::optional<ConflictKind> kind,
                                   const base::Error& error, std::string_view action, const std::optional<Texts>& there,
                                   bool written);

  DestinationSession& session_;
  GroupExecutor& executor_;
  const LiveErrorPolicies& policies_;
  const std::string& stream_id_;
  const Transaction& transaction_;
  const OtherRights rights_;
  Arena arena_;
  std::vector<Settled> conflicts_;
  uint64_t settled_ = 0;
};

}  // namespace thalweg::apply
