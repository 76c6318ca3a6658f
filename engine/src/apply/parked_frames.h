#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"
#include "lcr/frame.h"
#include "metadata/source_table.h"
#include "pg/connection.h"

// The frames of a parked transaction, read back from thalweg.error_queue_chunk.

namespace thalweg::apply {

// Calls visit(frame) for each frame in order, the tables' descriptions first, until it returns false or fails. A frame
// lives as long as its call. One piece of the transaction is in memory at a time. The connection is in no pipeline.
base::Result<void> visit_parked_frames(pg::Connection& connection, int64_t error_id,
                                       const std::function<base::Result<bool>(const lcr::FrameView&)>& visit);

// unknown_error_transaction.
std::unexpected<base::Error> unknown_parked(int64_t error_id);

// The table that a TABLE frame describes. `id`: see SourceTable.
base::Result<std::shared_ptr<metadata::SourceTable>> described_table(const lcr::FrameView& frame, uint64_t id);

}  // namespace thalweg::apply
