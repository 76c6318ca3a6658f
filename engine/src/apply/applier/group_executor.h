#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apply/applier/change_writer.h"
#include "apply/applier/data_layer.h"
#include "apply/applier/row_turn.h"
#include "apply/applier/statement_handlers.h"
#include "apply/applier/tuple_values.h"
#include "apply/applier/update_merger.h"
#include "apply/table_finder.h"
#include "apply/transaction.h"

// Executes source transactions on one session, up to but without the commit.

namespace thalweg::apply {

struct RowCounts {
  uint64_t inserts = 0;
  uint64_t updates = 0;
  uint64_t deletes = 0;
  uint64_t truncates = 0;
  base::UnixMicros newest;  // at the source: when the newest of them was committed
};

// Owner: one applier, or whoever executes a parked transaction.
class GroupExecutor {
 public:
  // `handlers`: those of which the tables of `tables` have their statements.
  GroupExecutor(DestinationSession& session, TableFinder& tables, telemetry::Counter& sets,
                telemetry::Counter& data_layer_calls, telemetry::Counter& merged,
                std::span<const metadata::StatementHandler> handlers)
      : session_(session),
        tables_(tables),
        writer_(session, sets),
        handlers_(session, handlers),
        data_layer_(session, data_layer_calls),
        merger_(merged) {}

  // From the next group on: rows go through the data layer where it takes them. Rows of a transaction that is executed
  // by itself, after a failure, never do.
  void use_data_layer(bool use) { uses_data_layer_ = use; }

  // Sends the rows of a small group in their order, each as a statement that fails when it finds no row; does not
  // sync. `progress`: goes through the data layer with them. Without it the caller ends the pipeline with the
  // progress update.
  base::Result<void> send_checked(const Group& group, const std::optional<PendingFrame>& progress);
  // Sends the rows of one transaction in the same way; the caller ends the pipeline with a statement of its own.
  base::Result<void> send_checked(const Transaction& transaction);
  // Executes a group through the data layer, or else merged and in sets, within the transaction that the caller has
  // begun; synced and checked on return. `settle`: where the group is begun beside others that it depends on. Waits
  // until they have committed; a failed Result is the caller's to understand. Rows that touch what those write, and
  // what follows a row of which that is not known, are executed after it.
  using Settle = std::function<base::Result<void>()>;
  base::Result<Refusal> execute_together(const Group& group, const Settle& settle);
  // Executes one transaction's rows in their order, within the transaction that the caller has begun; synced and
  // checked.
  base::Result<Refusal> execute_rows(const Transaction& transaction);
  // Executes them where a row that fails need not fail the transaction: `settle_row` is called for each such row, with
  // the session synced and all of the transaction's rows before it in force. No refusal: the row is settled, and the
  // transaction goes on behind it. `change`: its number in the transaction, from 1.
  struct FailedRow {
    const lcr::FrameView& frame;
    uint64_t change;
    const StatementFailure& failure;
  };
  using SettleRow = std::function<base::Result<Refusal>(const FailedRow&)>;
  base::Result<Refusal> execute_rows(const Transaction& transaction, const SettleRow& settle_row);
  // The row at hand in the other way; synced. `is_there`: the destination has a row of the identity, which becomes or
  // goes as the change says, whatever it was; else an UPDATE inserts its new row. `done`: false where that cannot be,
  // and nothing has changed.
  base::Result<Refusal> overwrite_row(const Transaction& transaction, const lcr::FrameView& frame, bool is_there,
                                      bool& done);
  // The row at hand once more, as it is; synced. A refusal has changed nothing.
  base::Result<Refusal> repeat_row(const Transaction& transaction, const lcr::FrameView& frame);
  // The statements of error handlers in the place of the row at hand; synced. A refusal, or a reason in `why`, has
  // changed nothing.
  base::Result<Refusal> replace_row(const Transaction& transaction, const lcr::FrameView& frame,
                                    const HandledError& failed, std::string& why);
  // Counts a row that was written for the change over the same connection, and executes the statements that handlers
  // have for it; synced.
  base::Result<Refusal> follow_row(const Transaction& transaction, const lcr::FrameView& frame);
  // The change at which the last execute_rows() failed: its number in the transaction, from 1. 0: it did not, or not at
  // a change.
  uint64_t failed_change() const { return failed_change_; }

  // Rows executed since the previous take_counts(), by table.
  std::unordered_map<const metadata::TableMetadata*, RowCounts> take_counts() { return std::exchange(counts_, {}); }
  // Gives a group's memory back and forgets its tables, before its transactions count as committed.
  void reset();

 private:
  base::Result<const metadata::TableMetadata*> table_of(const Transaction& transaction, const lcr::FrameView& frame);
  base::Result<void> send_rows_checked(const Transaction& transaction);
  base::Result<void> send_row(const Transaction& transaction, const lcr::FrameView& frame, bool checked);
  base::Result<void> send_write(const Transaction& transaction, const metadata::TableMetadata& table,
                                const lcr::FrameView& frame, bool checked);
  bool is_copied(const metadata::TableMetadata& table, const Transaction& transaction);
  bool has_precommit() const { return handlers_.any_precommit() && reaches_; }
  struct NumberedFrame {
    lcr::FrameView frame;
    uint64_t change;
  };
  base::Result<Refusal> execute_settling(const Transaction& transaction, std::span<const NumberedFrame> rows,
                                         const SettleRow& settle_row);
  base::Result<void> set_savepoint();
  base::Result<Refusal> keep_savepoint();
  base::Result<Refusal> forget_savepoint();  // with what was done since
  base::Result<Refusal> write_over(const Transaction& transaction, const metadata::TableMetadata& table,
                                   const lcr::FrameView& frame, const UpdateValues& values, bool updates);
  base::Result<void> send_truncate(const Transaction& transaction, const lcr::FrameView& frame);
  // False: the row is for SQL, and nothing of its table is on hold any more.
  base::Result<bool> send_below_sql(const Transaction& transaction, const lcr::FrameView& frame);
  base::Result<void> add_below_sql(std::span<const PendingFrame> frames);
  base::Result<void> flush_below_sql();
  base::Result<void> send_idempotent(const metadata::TableMetadata& table, const lcr::FrameView& frame);
  base::Result<Turn> turn_of(const Transaction& transaction, const lcr::FrameView& frame);
  base::Result<Refusal> add_to_batch(const Transaction& transaction, const lcr::FrameView& frame);
  base::Result<Refusal> flush_batches();
  base::Result<Refusal> flush_waiting();  // sends what waits, if anything does
  base::Result<Refusal> flush(Compactor& batch);
  Compactor& batch_for(const metadata::TableMetadata& table);
  void count(const metadata::TableMetadata& table, const Transaction& transaction, lcr::FrameKind kind);

  DestinationSession& session_;
  TableFinder& tables_;
  ChangeWriter writer_;
  StatementHandlers handlers_;
  bool reaches_ = false;  // a change of the transaction at hand: the initial copy does not have it
  DataLayer data_layer_;
  UpdateMerger merger_;  // before the data layer
  RowTurns turns_;
  bool uses_data_layer_ = false;
  Arena arena_;
  std::unordered_map<uint64_t, std::unique_ptr<Compactor>> batches_;  // by TableMetadata::generation
  std::vector<Compactor*> used_;                                      // in the order of their first row in this group
  const metadata::TableMetadata* last_table_ = nullptr;               // of this group
  Compactor* last_batch_ = nullptr;
  std::unordered_map<const metadata::TableMetadata*, RowCounts> counts_;
  uint64_t failed_change_ = 0;
  RowCounts* last_counts_ = nullptr;
  const metadata::TableMetadata* last_counted_ = nullptr;
};

// The error that stands for a refusal when nothing else helps: apply_conflict, apply_failed,
// initial_copy_inconsistent, or what the server said where it is nobody's data's fault. Names table, key, commit LSN.
base::Error final_error(const StatementFailure& failure, const Transaction& transaction);

}  // namespace thalweg::apply
