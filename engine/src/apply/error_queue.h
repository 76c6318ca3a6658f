#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// Transactions that could not be applied and were parked whole at the destination (docs/decisions/error-queue.md).
// These functions work on thalweg.error_queue over any connection, whether the stream's apply runs or not. One that
// runs is told afterwards (Apply::note_errors_changed): some have gone through even where the answer is a failure.

namespace thalweg::apply {

struct ParkedTransaction {
  int64_t id = 0;
  base::Lsn commit_lsn;
  base::Xid xid;
  uint64_t lcrs = 0;
  std::vector<std::string> tables;  // schema-qualified
  std::string code;                 // of the error catalogue
  std::string message;
  std::string sqlstate;   // empty where the destination did not refuse by itself
  std::string parked_at;  // RFC 3339, UTC
};

// Oldest commit first. An empty list when the schema thalweg does not exist.
base::Result<std::vector<ParkedTransaction>> list_parked(pg::Connection& connection, std::string_view stream_id);
// Number of parked transactions of the stream.
base::Result<uint64_t> count_parked(pg::Connection& connection, std::string_view stream_id);
// Drops one for good. Fails with unknown_error_transaction when there is none of that id.
base::Result<void> remove_parked(pg::Connection& connection, std::string_view stream_id, int64_t id);
// Applies one, then every parked transaction behind it that shares a row with it, in commit order and in one
// destination transaction each (taking the connection over for it), and takes them out of the queue in the same. Stops
// at the first that fails again.
base::Result<void> execute_parked(pg::Connection connection, std::string_view stream_id, int64_t id);

}  // namespace thalweg::apply
