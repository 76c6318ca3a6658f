#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apply/apply.h"
#include "apply/transaction.h"
#include "base/error.h"
#include "metadata/destination_version.h"
#include "metadata/metadata_cache.h"
#include "pg/connection.h"
#include "telemetry/agent.h"

// The metadata cache's single writer (Wong et al. 2009, figure 11): loads, invalidates, purges; keeps the contents of
// TABLE frames.

namespace thalweg::apply {

// Owner: the reader.
class TableWriter {
 public:
  // Time at the destination counts in `time`. `compared`, `handlers`: as of TableLoader.
  TableWriter(metadata::MetadataCache& cache, pg::Connection connection, std::vector<CatchUpSpan> catch_up,
              std::string stream_id, telemetry::TimeAccount& time, std::span<const metadata::ComparedTable> compared,
              std::span<const metadata::StatementHandler> handlers);

  struct Table {
    const std::shared_ptr<const metadata::SourceTable>* source = nullptr;
    const metadata::TableMetadata* metadata = nullptr;
  };

  // A TABLE frame. Fails as TableLoader::load, but for what is wrong with the table, which find() and latest() tell.
  base::Result<void> describe(const lcr::FrameView& frame);
  // Whether the table is stopped, or not one of the stream's (another one that has taken over its name): its changes
  // are left out.
  bool leaves_out(base::RelationId relation) const { return left_out_.contains(relation); }
  bool leaves_out_any() const { return !left_out_.empty(); }
  // Both are valid until the next call of any method. Fail with corrupt_frame where no TABLE frame came before, or as
  // TableLoader::load.
  base::Result<Table> find(base::RelationId relation, uint32_t version);
  base::Result<Table> latest(base::RelationId relation);
  // Quoted, with its schema; empty where no TABLE frame came.
  std::string name_of(base::RelationId relation) const;
  // Whether find() of its latest version need not ask the destination.
  bool is_cached(base::RelationId relation) const;
  // The next find asks the cache, which knows what appliers have noticed.
  void look_again() { last_ = {}; }

  // Whether keys may be others than before: transactions from now on have to wait for those until now. Once.
  bool take_keys_changed() { return std::exchange(keys_changed_, false); }
  // Notes, durably and before the transaction goes to the appliers, to which partitions of recorded tables it wrote,
  // and which it truncated: whoever watches the source's catalogs may never see one there
  // (docs/decisions/table-identity.md). False: none.
  base::Result<bool> note_partitions(const Transaction& transaction);
  // A transaction goes to the appliers.
  void hand_over(base::Lsn commit_lsn);
  // Frees metadata that no uncommitted transaction can use. `any_open`: transactions whose commit has not come may have
  // rows of older versions.
  void purge(base::Lsn low_watermark, bool any_open);
  // The tables in use, by their oids at the destination, when they are due for a comparison with its catalog: at most
  // once a second, and only if something was handed over. Else empty.
  std::vector<base::RelationId> to_watch(std::chrono::steady_clock::time_point now);
  // Loads again the changed ones of `watched`.
  void compare(std::span<const base::RelationId> watched, std::span<const metadata::DestinationVersion> versions);

 private:
  using SourcePointer = std::shared_ptr<const metadata::SourceTable>;

  base::Result<const metadata::TableMetadata*> load(const SourcePointer& source);
  base::Result<Table> use(const SourcePointer& source);
  const CatchUpSpan* span_of(const lcr::TableDescription& description) const;
  void reload(const metadata::TableMetadata& changed);
  static uint64_t place(base::RelationId relation, uint32_t version) {
    return static_cast<uint64_t>(relation.value) << 32 | version;
  }

  metadata::MetadataCache& cache_;
  pg::Connection connection_;  // for the destination's catalog
  metadata::TableLoader loader_;
  const std::vector<CatchUpSpan> catch_up_;
  const std::string stream_id_;
  telemetry::TimeAccount& time_;
  uint64_t descriptions_ = 0;
  std::unordered_set<base::RelationId> left_out_;
  std::unordered_map<uint64_t, SourcePointer> sources_;  // by place()
  std::unordered_map<base::RelationId, SourcePointer> latest_;
  std::unordered_map<uint64_t, int64_t> destination_versions_;  // of each source's last load, by SourceTable::id
  struct Superseded {
    SourcePointer source;
    base::Lsn high_watermark;  // once the low watermark is above it, no transaction in flight has rows of this version
  };
  std::vector<Superseded> superseded_;
  std::unique_ptr<const metadata::TableMetadata> uncached_;  // where the cache had no memory
  Table last_;                                               // what find() gave
  bool keys_changed_ = false;
  base::Lsn high_watermark_;
  bool handed_over_ = false;  // since the last look at the destination
  std::chrono::steady_clock::time_point watched_at_;
};

}  // namespace thalweg::apply
