#include "apply/applier/applier_parts.h"

#include <fmt/format.h>

namespace thalweg::apply {

Lane::Lane(SharedState& shared, metadata::MetadataCache& cache, int applier, int number)
    : tables(cache, shared.destination_conninfo, shared.connect_options(fmt::format("applier {} catalog", applier)),
             applier, shared.compared, shared.statement_handlers),
      progress(shared, applier + number * kAppliersMax) {
  static_assert(kAppliersMax * ApplierParts::kLanes <= ProgressWriter::kRowsMax);
}

ApplierParts::ApplierParts(SharedState& shared_state, metadata::MetadataCache& cache, int applier)
    : shared(shared_state), number(applier), lanes{Lane(shared, cache, number, 0), Lane(shared, cache, number, 1)} {}

bool ApplierParts::is_turn(const Group& group) const {
  return shared.parameters.commit_serialization.load(std::memory_order_relaxed) != CommitSerialization::full ||
         shared.committed_through.load(std::memory_order_acquire) + 1 == group.number;
}

void ApplierParts::count_committed(Lane& lane) {
  for (const auto& transaction : lane.group->transactions) counts.committed(*transaction, shared.clock->unix_now());
  counts.take(*lane.executor, shared.clock->unix_now());
}

}  // namespace thalweg::apply
