#pragma once

#include <memory>

#include "metadata/table_metadata.h"

// Made-up metadata, for tests and benchmarks of the cache.

namespace thalweg::metadata {

// Of the source table `id`, of about the same size for every id: five columns and one index, as in Wong et al. 2009,
// VI.C.
inline std::unique_ptr<const TableMetadata> sample_metadata(uint64_t id, uint64_t generation = 1) {
  auto table = std::make_unique<TableMetadata>();
  table->generation = generation;
  table->source_id = id;
  table->source.relation = {static_cast<uint32_t>(id)};
  table->quoted_name = "public.t";
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    table->source.columns.push_back({.name = name, .type = {20}, .type_modifier = -1, .is_key = false});
    Column column;
    column.name = column.quoted_name = name;
    table->columns.push_back(std::move(column));
  }
  table->identity = {0};
  table->unique_keys.push_back({.index = 1, .columns = {0}, .nulls_collide = false, .is_referenced = false});
  return table;
}

}  // namespace thalweg::metadata
