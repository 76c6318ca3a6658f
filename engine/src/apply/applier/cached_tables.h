#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "apply/table_finder.h"
#include "metadata/metadata_cache.h"
#include "pg/connection.h"

// An applier's view of the metadata cache, with its fall-back (Wong et al. 2009, figure 10, line 33).

namespace thalweg::apply {

// Owner: one applier.
class CachedTables final : public TableFinder {
 public:
  // `number`: the applier's, from 1. `compared`, `handlers`: as of TableLoader.
  CachedTables(metadata::MetadataCache& cache, base::Conninfo conninfo, pg::ConnectOptions options, int number,
               std::span<const metadata::ComparedTable> compared, std::span<const metadata::StatementHandler> handlers);

  // From the cache without a latch. A table that is not there, or has changed, is loaded from the destination over a
  // connection of its own (the applier's may be in the middle of a transaction) and kept until release().
  base::Result<const metadata::TableMetadata*> find(const metadata::SourceTable& source) override;
  void release() override;
  // Whether find() would not have to load it.
  bool has(const metadata::SourceTable& source) const;
  void disconnect() { connection_.reset(); }
  // After statements failed as if these were not the tables that their metadata says: whether that is so for some
  // that were found since release(). They are loaded again by the next find after release(), and by the reader.
  base::Result<bool> have_changed();

 private:
  base::Result<void> connect();
  base::Result<const metadata::TableMetadata*> load(const metadata::SourceTable& source);

  metadata::MetadataCache& cache_;
  metadata::MetadataCache::ReaderCounts& counts_;
  const base::Conninfo conninfo_;
  const pg::ConnectOptions options_;
  std::optional<pg::Connection> connection_;  // opened when it is needed
  metadata::TableLoader loader_;
  // Tables by SourceTable::id since the last release(): within a group none may turn into another.
  std::unordered_map<uint64_t, const metadata::TableMetadata*> found_;
  std::vector<std::unique_ptr<const metadata::TableMetadata>> own_;  // what the cache did not have
};

}  // namespace thalweg::apply
