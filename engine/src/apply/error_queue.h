#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "metadata/statement_handler.h"
#include "pg/connection.h"
#include "telemetry/parked_contents.h"
#include "telemetry/parked_transaction.h"

// Transactions that could not be applied and were parked whole at the destination (docs/decisions/error-queue.md).
// These functions work on thalweg.error_queue over any connection, whether the stream's apply runs or not. Notify a
// running apply afterwards (Apply::note_errors_changed), even after a failure: some transactions may have gone through.

namespace thalweg::apply {

struct ParkedCounts {
  uint64_t total = 0;
  uint64_t roots = 0;
};

// The callbacks of an observer of an execution.
struct ExecutionWatch {
  // Called with how many have been executed, of how many: at first, and after each.
  std::function<void(uint64_t executed, uint64_t total)> progress;
  // Called for each that fails and stays in the queue; not for those that wait behind it.
  std::function<void(int64_t id, const base::Error& why)> failed = {};
  // Called for each that has left the queue without any change of it being applied: all were left out.
  std::function<void(int64_t id)> left_out = {};
  // Any thread may set it: no further transaction begins then, and the call fails with engine_stopping. May be null.
  const std::atomic<bool>* abandon = nullptr;
  // Has the stream's apply hand out nothing until go_on, for some seconds at most, and waits until nothing of it runs.
  // Either may be empty: then what is parked meanwhile may stay.
  std::function<void()> hold_apply = {};
  std::function<void()> go_on = {};
};

// An empty list when the schema thalweg does not exist.
base::Result<std::vector<telemetry::ParkedTransaction>> list_parked(pg::Connection& connection,
                                                                    std::string_view stream_id,
                                                                    const telemetry::ParkedPart& part = {});
// Fails with unknown_error_transaction when there is none of that id.
base::Result<telemetry::ParkedTransaction> find_parked(pg::Connection& connection, std::string_view stream_id,
                                                       int64_t id);
// Returns the transactions of these ids that are in the queue, in any order.
base::Result<std::vector<telemetry::ParkedTransaction>> find_parked(pg::Connection& connection,
                                                                    std::string_view stream_id,
                                                                    std::span<const int64_t> ids);
base::Result<ParkedCounts> count_parked(pg::Connection& connection, std::string_view stream_id);
// Returns the causes with the most transactions first, kParkedCausesMax at most.
base::Result<std::vector<telemetry::ParkedCause>> parked_causes(pg::Connection& connection, std::string_view stream_id);
// Drops one for good; those that stood behind it, and behind no other, are parked_freed then. Fails with
// unknown_error_transaction when there is none of that id.
base::Result<void> remove_parked(pg::Connection& connection, std::string_view stream_id, int64_t id);
// Decides about one change of a transaction, in the place of what was decided before; none: as it came again. The
// frames stay as they are. Fails with unknown_error_transaction, invalid_request (parked_edits.h, or where the edits
// are not of that version any more; empty: whatever they are), and with database_busy while transactions are executed.
base::Result<void> edit_parked(pg::Connection& connection, std::string_view stream_id, int64_t id, uint64_t number,
                               const std::optional<telemetry::ParkedEdit>& edit, std::string_view version = {});
// Prevents, until the session ends, copies of tables while transactions are executed, and executions while a copy is
// taken, so that no old row is written into a table that is being copied. Waits briefly for the session of an engine
// that has died; then database_busy.
base::Result<void> hold_error_queue(pg::Connection& connection, std::string_view stream_id);
// Removes transactions from the queue whose every change precedes the copy of its table, because the copy contains
// their result; but keeps those with a table that is no longer the stream's. Returns the removed ones, by table.
struct Superseded {
  std::string table;  // the one of their tables that was copied last, quoted
  base::Lsn copied_at;
  uint64_t transactions = 0;
};
base::Result<std::vector<Superseded>> discard_superseded(pg::Connection& connection, std::string_view stream_id);
// Applies one, then every parked transaction behind it that shares a row with it, in commit order and in one
// destination transaction each (which also removes it from the queue); takes the connection over for it. Goes on with
// what has been parked behind them meanwhile, which `progress` counts as well, until there is no more. Stops at the
// first that fails again, which then shows its new reason; remaining transactions that wait behind no other become
// parked_freed. Of several, those with one cause or the whole queue, a failed one holds back only those that wait
// behind it; the returned failure is the first one's and counts the rest. Fails with invalid_request where the
// destination lacks the role, and with insufficient_privilege where the session may not act as it.
// `handlers`: the stream's, whose statements are executed with the changes.
base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id,
                                  const telemetry::ParkedChoice& choice, const ExecutionWatch& watch = {},
                                  std::span<const metadata::StatementHandler> handlers = {});
struct DryRun {
  std::optional<base::Error> error;  // none: it would go through
  uint64_t changes = 0;
  uint64_t edited = 0;         // of its changes: were applied with other values
  uint64_t left_out = 0;       // of its changes: were not applied
  uint64_t settled = 0;        // of its changes: were refused, and error handlers took their places
  uint64_t failed_change = 0;  // of its changes, from 1: at which it fails; 0: at none
};
// Applies one as it is edited and rolls it back, with the constraints that are deferred checked. Takes its rows' locks
// meanwhile. Fails where that cannot be told: the transaction waits behind another one, or the
// destination's locks are not to be had. `role`: as ParkedChoice's. `handlers`: as of execute_parked().
base::Result<DryRun> dry_run_parked(pg::Connection connection, std::string_view stream_id, int64_t id,
                                    const std::string& role = {},
                                    std::span<const metadata::StatementHandler> handlers = {});

}  // namespace thalweg::apply
