#include "apply/reader/table_writer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "metadata/destination_version.h"

namespace thalweg::apply {

using base::ErrorCode;
using metadata::SourceTable;
using metadata::TableMetadata;
using telemetry::Activity;
using telemetry::ActivityScope;

namespace {
constexpr std::chrono::seconds kWatchPause{1};
constexpr size_t kWatchedTablesMax = 200;  // of one look: those used most recently
}  // namespace

TableWriter::TableWriter(metadata::MetadataCache& cache, pg::Connection connection, std::vector<CatchUpSpan> catch_up,
                         std::string stream_id, telemetry::TimeAccount& time,
                         std::span<const metadata::ComparedTable> compared,
                         std::span<const metadata::StatementHandler> handlers)
    : cache_(cache),
      connection_(std::move(connection)),
      loader_(cache.generations(), compared, handlers),
      catch_up_(std::move(catch_up)),
      stream_id_(std::move(stream_id)),
      time_(time) {}

base::Result<void> TableWriter::describe(const lcr::FrameView& frame) {
  THALWEG_ASSIGN(lcr::TableDescription description, frame.table());
  const CatchUpSpan* const span = span_of(description);
  if (span != nullptr ? span->stopped : !catch_up_.empty()) {
    left_out_.insert(description.relation);
    return {};
  }
  SourcePointer& latest = latest_[description.relation];
  // An older one that comes again is of another run of capture, whose numbers begin anew: it is news.
  if (latest && std::ranges::equal(latest->frame, frame.bytes())) return {};
  auto source = std::make_shared<SourceTable>();
  source->id = ++descriptions_;
  source->frame.assign(frame.bytes().begin(), frame.bytes().end());
  if (span != nullptr) {
    source->copied_from = span->copied_from;
    source->copied_to = span->copied_to;
    if (span->recorded) source->recorded_by = stream_id_;
    description.schema_name = span->schema_name;
    description.table_name = span->table_name;
  }
  source->quoted_name = pg::quote_table(description.schema_name, description.table_name);
  source->description = std::move(description);
  look_again();
  if (latest) {
    // Keys may be others from here on: what was hashed with the old ones must have committed.
    keys_changed_ = true;
    superseded_.push_back({.source = latest, .high_watermark = high_watermark_});
  }
  latest = source;
  sources_[place(source->description.relation, source->description.version)] = source;
  // A change that needs the table meets what is wrong with it. There may be none: what another destination of the
  // stream lacks comes for all, as its table was then, and this one may have followed a later change of the columns.
  const auto loaded = load(source);
  const bool waits = loaded || loaded.error().code == ErrorCode::destination_table_differs ||
                     loaded.error().code == ErrorCode::missing_table;
  return waits ? base::Result<void>{} : std::unexpected(loaded.error());
}

base::Result<bool> TableWriter::note_partitions(const Transaction& transaction) {
  std::map<base::RelationId, nlohmann::json> noted;
  for (const WrittenPartition& written : transaction.partitions) {
    if (transaction.is_aborted(written.subxid)) continue;
    if (!written.truncated) {  // else the table may never have been described: none of its rows came
      const auto table = latest_.find(written.table);
      if (table == latest_.end() || !table->second || table->second->recorded_by.empty()) continue;
    }
    // As instantiation's bookkeeping reads it. Of each kind the last counts.
    const std::string key = std::to_string(written.mark.partition.value) + (written.truncated ? "/truncated" : "");
    noted[written.table][key] = {written.mark.schema_name, written.mark.partition_name,
                                 base::to_string(transaction.commit_lsn), std::to_string(transaction.xid.value)};
  }
  const ActivityScope network(time_, Activity::network);
  for (const auto& [table, partitions] : noted) {
    THALWEG_TRY(
        connection_.query("UPDATE thalweg.stream_table SET partitions = partitions || $3::jsonb WHERE "
                          "stream_id = $1 AND identity->'relation' = $2::jsonb",
                          {stream_id_, std::to_string(table.value), partitions.dump()}));
  }
  return !noted.empty();
}

const CatchUpSpan* TableWriter::span_of(const lcr::TableDescription& description) const {
  // Several names may have stood for the relation, each in its time: the one that it has now goes first.
  const CatchUpSpan* found = nullptr;
  for (const CatchUpSpan& span : catch_up_) {
    const bool is_named = span.is_named(description);
    if (span.relation.value != 0 ? span.relation != description.relation : !is_named) continue;
    if (is_named) return &span;
    if (found == nullptr) found = &span;
  }
  return found;
}

std::string TableWriter::name_of(base::RelationId relation) const {
  const auto found = latest_.find(relation);
  return found == latest_.end() || !found->second ? std::string() : found->second->quoted_name;
}

bool TableWriter::is_cached(base::RelationId relation) const {
  const auto found = latest_.find(relation);
  return found != latest_.end() && found->second && cache_.find(found->second->id) != nullptr;
}

base::Result<const TableMetadata*> TableWriter::load(const SourcePointer& source) {
  const ActivityScope network(time_, Activity::network);
  look_again();
  uncached_.reset();
  auto loaded = loader_.load(connection_, *source);
  if (!loaded) return std::unexpected(std::move(loaded).error());
  const int64_t version = (*loaded)->destination_version;
  const auto [before, first] = destination_versions_.try_emplace(source->id, version);
  if (!first && before->second != version) {
    before->second = version;
    keys_changed_ = true;
  }
  if (const TableMetadata* const cached = cache_.insert(source->id, *loaded)) return cached;
  uncached_ = std::move(*loaded);
  return uncached_.get();
}

base::Result<TableWriter::Table> TableWriter::use(const SourcePointer& source) {
  const TableMetadata* table = cache_.get(source->id);
  if (table == nullptr) {
    if (destination_versions_.contains(source->id)) loader_.forget_types();
    THALWEG_ASSIGN(table, load(source));
  }
  return Table{.source = &source, .metadata = table};
}

base::Result<TableWriter::Table> TableWriter::find(base::RelationId relation, uint32_t version) {
  if (last_.metadata != nullptr && last_.metadata->source.relation == relation &&
      last_.metadata->source.version == version) {
    return last_;
  }
  const auto source = sources_.find(place(relation, version));
  if (source == sources_.end()) {
    return base::fail(ErrorCode::corrupt_frame,
                      fmt::format("a row of relation {} came before its description", relation.value));
  }
  THALWEG_ASSIGN(last_, use(source->second));
  return last_;
}

base::Result<TableWriter::Table> TableWriter::latest(base::RelationId relation) {
  const auto source = latest_.find(relation);
  if (source == latest_.end()) {
    return base::fail(ErrorCode::corrupt_frame,
                      fmt::format("TRUNCATE of relation {} came before its description", relation.value));
  }
  return use(source->second);
}

void TableWriter::hand_over(base::Lsn commit_lsn) {
  handed_over_ = true;
  high_watermark_ = std::max(high_watermark_, commit_lsn);
  cache_.set_high_watermark(high_watermark_);
}

void TableWriter::purge(base::Lsn low_watermark, bool any_open) {
  if (!any_open && !superseded_.empty()) {
    std::erase_if(superseded_, [&](const Superseded& old) {
      if (low_watermark <= old.high_watermark && old.high_watermark) return false;
      look_again();
      cache_.invalidate(old.source->id);
      destination_versions_.erase(old.source->id);
      const auto known = sources_.find(place(old.source->description.relation, old.source->description.version));
      if (known != sources_.end() && known->second == old.source) sources_.erase(known);
      return true;
    });
  }
  if (!cache_.has_unpurged()) return;
  look_again();
  cache_.purge(low_watermark);
}

std::vector<base::RelationId> TableWriter::to_watch(std::chrono::steady_clock::time_point now) {
  std::vector<base::RelationId> oids;
  if (!handed_over_ || now - watched_at_ < kWatchPause) return oids;
  watched_at_ = now;
  handed_over_ = false;
  for (const TableMetadata* table : cache_.most_recent(kWatchedTablesMax)) oids.push_back(table->destination);
  return oids;
}

void TableWriter::compare(std::span<const base::RelationId> watched,
                          std::span<const metadata::DestinationVersion> versions) {
  for (const TableMetadata* table : cache_.most_recent(kWatchedTablesMax)) {
    if (std::ranges::find(watched, table->destination) == watched.end()) continue;  // loaded since
    const auto now_there = std::ranges::find(versions, table->destination, &metadata::DestinationVersion::table);
    if (now_there == versions.end() || now_there->version != table->destination_version) reload(*table);
  }
}

// Loads a changed table, so that appliers need not. One that cannot be loaded is no error before it has a row.
void TableWriter::reload(const TableMetadata& changed) {
  const std::string name = changed.quoted_name;
  const auto source = sources_.find(place(changed.source.relation, changed.source.version));
  const uint64_t id = changed.source_id;
  look_again();
  cache_.invalidate(id);
  loader_.forget_types();
  if (source == sources_.end() || source->second->id != id) return;
  const auto loaded = load(source->second);
  base::log_event(base::LogLevel::info, "destination_table_changed",
                  {{"stream", stream_id_}, {"table", name}, {"reason", loaded ? "" : loaded.error().message}});
}

}  // namespace thalweg::apply
