#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"
#include "telemetry/parked_transaction.h"

// Transactions that could not be applied and were parked whole at the destination (docs/decisions/error-queue.md).
// These functions work on thalweg.error_queue over any connection, whether the stream's apply runs or not. One that
// runs is told afterwards (Apply::note_errors_changed): some have gone through even where the answer is a failure.

namespace thalweg::apply {

struct ParkedCounts {
  uint64_t total = 0;
  uint64_t roots = 0;
};

// Of whoever follows an execution.
struct ExecutionWatch {
  // Called with how many have been executed, of how many: at first, and after each.
  std::function<void(uint64_t executed, uint64_t total)> progress;
  // Once it is set, by anybody, the next one is not begun: engine_stopping. May be null.
  const std::atomic<bool>* abandon = nullptr;
};

// An empty list when the schema thalweg does not exist.
base::Result<std::vector<telemetry::ParkedTransaction>> list_parked(pg::Connection& connection,
                                                                    std::string_view stream_id,
                                                                    const telemetry::ParkedPart& part = {});
// Fails with unknown_error_transaction when there is none of that id.
base::Result<telemetry::ParkedTransaction> find_parked(pg::Connection& connection, std::string_view stream_id,
                                                       int64_t id);
base::Result<ParkedCounts> count_parked(pg::Connection& connection, std::string_view stream_id);
// Drops one for good; those that stood behind it, and behind no other, are parked_freed then. Fails with
// unknown_error_transaction when there is none of that id.
base::Result<void> remove_parked(pg::Connection& connection, std::string_view stream_id, int64_t id);
// Keeps a table from being taken for another copy while transactions are executed, and those from being executed while
// one is taken, until the session ends: nobody writes a row of the past into a table that is being copied. Waits a
// little for a session of an engine that has died; then database_busy.
base::Result<void> hold_error_queue(pg::Connection& connection, std::string_view stream_id);
// Takes those out of the queue whose every change lies before the copy of its table: the copy has what came of them.
// Not where one of its tables is none of the stream's any more. Returns what went, by table.
struct Superseded {
  std::string table;  // the one of their tables that was copied last, quoted
  base::Lsn copied_at;
  uint64_t transactions = 0;
};
base::Result<std::vector<Superseded>> discard_superseded(pg::Connection& connection, std::string_view stream_id);
// Applies one, then every parked transaction behind it that shares a row with it, in commit order and in one
// destination transaction each (taking the connection over for it), and takes them out of the queue in the same. Stops
// at the first that fails again, which then shows why it did; those left that wait behind no other are parked_freed.
// Without `id`, all of the queue: one that fails holds back those that wait behind it and no others; the failure is the
// first one's and tells how many are left.
base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id, std::optional<int64_t> id,
                                  const ExecutionWatch& watch = {});

}  // namespace thalweg::apply
