#pragma once

#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"

// That a partition was truncated, as thalweg_output tells it in a logical message (docs/formats/output-batch.md).

namespace thalweg::capture {

inline constexpr std::string_view kTruncatedPartitionPrefix = "thalweg_output.truncated_partition";

struct TruncatedPartition {
  base::Xid xid;  // the transaction, or subtransaction, that truncated it
  base::RelationId table;
  lcr::PartitionMark mark;
};

// Total: any bytes give one, or protocol_violation.
base::Result<TruncatedPartition> read_truncated_partition(std::string_view content);

}  // namespace thalweg::capture
