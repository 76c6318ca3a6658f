#pragma once

#include <string>

#include "base/error.h"
#include "mining/mined_table.h"
#include "mining/toast_chunks.h"
#include "wal/heap_page.h"

// Rows from tuples to the form that frames have them in (docs/formats/lcr-frame.md, "Tuple").

namespace thalweg::mining {

// Replaces `out` by the row. `chunks`: those of its transaction. A protocol_violation: the tuple is no row of the
// table, or of an older form of it that cannot be completed.
base::Result<void> read_row(const MinedTable& table, const wal::HeapTuple& tuple, const ToastChunks& chunks,
                            std::string& out);

}  // namespace thalweg::mining
