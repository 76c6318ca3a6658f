#pragma once

#include <cstdint>
#include <string_view>

#include "apply/ranges.h"
#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// Recovery of the progress when an apply starts (docs/decisions/apply-progress.md).

namespace thalweg::apply {

// The advisory lock that keeps a second engine away, until the session or the transaction ends. Waits for a server
// process of an engine that has just died; then fails with stream_in_use, which names the holder.
enum class LockSpan : uint8_t { session, transaction };
base::Result<void> take_lock(pg::Connection& connection, std::string_view stream_id, LockSpan span);

struct Recovered {
  int64_t epoch = 0;        // fences the appliers of every earlier run: their progress updates find no row
  base::Lsn low_watermark;  // transactions with commit LSN below it are committed
  LsnRanges applied;        // and these above it
};

// Starts a new epoch, folds the rows of earlier appliers into one, and commits durably.
// Fails with unknown_stream where the stream was never registered.
base::Result<Recovered> recover_progress(pg::Connection& connection, std::string_view stream_id);

}  // namespace thalweg::apply
