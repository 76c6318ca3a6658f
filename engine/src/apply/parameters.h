#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apply/error_policy.h"
#include "metadata/table_metadata.h"

// The parameters of an apply; engine/contract/parameters.json has their ranges and descriptions. A change takes effect
// while the apply runs, except where "not live" says that the value at its start counts.

namespace thalweg::apply {

enum class CommitSerialization : uint8_t { full, dependent_transactions, none };

inline constexpr int kAppliersMax = 64;

struct ApplyParameters {
  int parallelism = 4;  // appliers, 1..kAppliersMax
  CommitSerialization commit_serialization = CommitSerialization::dependent_transactions;
  bool disable_on_error = true;
  std::vector<ErrorPolicy> error_policies;
  std::vector<ConflictHandler> conflict_handlers;
  std::vector<metadata::ComparedTable> compared;               // not live
  std::vector<metadata::StatementHandler> statement_handlers;  // not live
  std::chrono::days conflict_retention{30};                    // of the conflict log's entries
  bool data_layer = true;                                      // through the destination's extension, where it has it
  size_t group_size = 20'000;                              // LCRs of one destination transaction, while apply is behind
  size_t txn_lcr_spill_threshold = 10'000;                 // LCRs of one source transaction kept in memory
  std::chrono::seconds txn_age_spill_threshold{900};       // that an open transaction's LCRs stay in memory
  uint64_t spill_limit_bytes = uint64_t{10'240} << 20;     // of segments on disk
  size_t metadata_cache_bytes = size_t{16} * 1024 * 1024;  // not live
  size_t memory_budget_bytes = size_t{256} * 1024 * 1024;  // not live
};

}  // namespace thalweg::apply
