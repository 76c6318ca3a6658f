#include "apply/applier/cached_tables.h"

#include <algorithm>
#include <utility>

#include "metadata/destination_version.h"

namespace thalweg::apply {

using metadata::SourceTable;
using metadata::TableMetadata;

CachedTables::CachedTables(metadata::MetadataCache& cache, base::Conninfo conninfo, pg::ConnectOptions options,
                           int number, std::span<const metadata::ComparedTable> compared,
                           std::span<const metadata::StatementHandler> handlers)
    : cache_(cache),
      counts_(cache.reader_counts(static_cast<size_t>(number - 1))),
      conninfo_(std::move(conninfo)),
      options_(std::move(options)),
      loader_(cache.generations(), compared, handlers) {}

base::Result<const TableMetadata*> CachedTables::find(const SourceTable& source) {
  const TableMetadata*& table = found_[source.id];
  if (table != nullptr) return table;
  table = cache_.find(source.id);
  if (table != nullptr) {
    counts_.hits.add();
    return table;
  }
  counts_.misses.add();
  THALWEG_ASSIGN(table, load(source));
  return table;
}

bool CachedTables::has(const SourceTable& source) const {
  return found_.contains(source.id) || cache_.find(source.id) != nullptr;
}

void CachedTables::release() {
  found_.clear();
  own_.clear();
}

base::Result<void> CachedTables::connect() {
  if (connection_ && !connection_->broken()) return {};
  THALWEG_ASSIGN(auto opened, pg::Connection::open(conninfo_, options_));
  connection_.emplace(std::move(opened));
  return {};
}

base::Result<const TableMetadata*> CachedTables::load(const SourceTable& source) {
  THALWEG_TRY(connect());
  THALWEG_ASSIGN(auto table, loader_.load(*connection_, source));
  counts_.loads.add();
  own_.push_back(std::move(table));
  return own_.back().get();
}

base::Result<bool> CachedTables::have_changed() {
  std::vector<base::RelationId> oids;
  for (const auto& [id, table] : found_) {
    if (table != nullptr) oids.push_back(table->destination);
  }
  if (oids.empty()) return false;
  bool changed = false;
  THALWEG_TRY(connect());
  THALWEG_ASSIGN(const auto versions, metadata::destination_versions(*connection_, oids));
  for (const auto& [id, table] : found_) {
    if (table == nullptr) continue;
    const auto now = std::ranges::find(versions, table->destination, &metadata::DestinationVersion::table);
    if (now != versions.end() && now->version == table->destination_version) continue;
    changed = true;
    cache_.note_schema_change(id);
  }
  if (changed) loader_.forget_types();
  return changed;
}

}  // namespace thalweg::apply
