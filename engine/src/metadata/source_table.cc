#include "metadata/source_table.h"

#include <algorithm>
#include <utility>

namespace thalweg::metadata {

namespace {

using Place = std::pair<base::RelationId, uint32_t>;

Place place_of(const std::shared_ptr<const SourceTable>& table) {
  return {table->description.relation, table->description.version};
}

}  // namespace

void TransactionTables::add(const std::shared_ptr<const SourceTable>& table) {
  if (table.get() == added_last_) return;
  auto at = std::ranges::lower_bound(tables_, place_of(table), {}, place_of);
  if (at == tables_.end() || place_of(*at) != place_of(table)) at = tables_.insert(at, table);
  added_last_ = at->get();
}

const SourceTable* TransactionTables::find(base::RelationId relation, uint32_t version) const {
  const auto at = std::ranges::lower_bound(tables_, Place{relation, version}, {}, place_of);
  return at == tables_.end() || place_of(*at) != Place{relation, version} ? nullptr : at->get();
}

const SourceTable* TransactionTables::latest(base::RelationId relation) const {
  auto at = std::ranges::upper_bound(tables_, Place{relation, UINT32_MAX}, {}, place_of);
  if (at == tables_.begin()) return nullptr;
  --at;
  return (*at)->description.relation == relation ? at->get() : nullptr;
}

}  // namespace thalweg::metadata
