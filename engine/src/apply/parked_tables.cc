#include "apply/parked_tables.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "metadata/destination_version.h"
#include "pg/bookkeeping_trust.h"

namespace thalweg::apply {

using base::ErrorCode;
using metadata::SourceTable;
using metadata::TableMetadata;

namespace {

constexpr size_t kTablesMax = 2000;  // then all are forgotten: descriptions of one table may be many

bool is_of_the_table(const base::Error& error) {
  return error.code == ErrorCode::missing_table || error.code == ErrorCode::destination_table_differs;
}

base::Lsn lsn_of(const pg::Rows& rows, size_t row, size_t column) {
  return base::parse_lsn(rows.text(row, column)).value_or(base::Lsn{});
}

// Its changes are left out, so nothing has to be known of what has its name at the destination, if anything has.
std::unique_ptr<const TableMetadata> left_out(const SourceTable& source) {
  auto table = std::make_unique<TableMetadata>();
  table->source = source.description;
  table->quoted_name = source.quoted_name;
  table->copied_from = table->copied_to = base::Lsn{std::numeric_limits<uint64_t>::max()};
  return table;
}

// A table is its relation; one that an older engine copied, whose relation nobody noted, is its name.
std::string key_of(std::string_view relation) { return "relation " + std::string(relation); }

}  // namespace

base::Result<void> ParkedTables::read_records(std::string_view stream_id) {
  THALWEG_ASSIGN(TableNames names, TableNames::read(connection_, stream_id));
  if (names != names_) {
    names_ = std::move(names);
    described_.clear();
    loaded_.clear();
  }
  return read_copies(stream_id);
}

base::Result<void> ParkedTables::read_copies(std::string_view stream_id) {
  copies_.clear();
  THALWEG_ASSIGN(const bool exists, pg::trusted_bookkeeping(connection_, {"stream_table"}));
  if (!exists) return {};
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection_.query("SELECT coalesce(to_jsonb(t) ->> 'destination_schema', schema_name), coalesce(to_jsonb(t) ->> "
                        "'destination_table', table_name), copied_from, copied_to, NOT copy_again AND copied_to "
                        "IS NOT NULL, coalesce(to_jsonb(t) -> 'identity' ->> 'relation', '0') "
                        "FROM thalweg.stream_table t WHERE stream_id = $1 AND (copy_again OR "
                        "EXISTS (SELECT FROM thalweg.copy_range r WHERE (r.stream_id, r.schema_name, "
                        "r.table_name) = (t.stream_id, t.schema_name, t.table_name))) "
                        "ORDER BY to_jsonb(t) ->> 'trouble' IS NULL",  // of two with one relation, the one that is well
                        {stream_id}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const bool is_known = rows.text(row, 5) != "0";
    copies_[is_known ? key_of(rows.text(row, 5)) : pg::quote_table(rows.text(row, 0), rows.text(row, 1))] = {
        .from = lsn_of(rows, row, 2), .to = lsn_of(rows, row, 3), .is_finished = rows.boolean(row, 4)};
  }
  return {};
}

base::Result<std::shared_ptr<const SourceTable>> ParkedTables::described(const lcr::FrameView& frame) {
  const auto bytes = frame.bytes();
  std::string key(reinterpret_cast<const char*>(bytes.data()) + lcr::kFrameHeaderBytes,
                  bytes.size() - lcr::kFrameHeaderBytes);
  key += std::to_string(frame.header().relation) + "/" + std::to_string(frame.header().table_version);
  if (const auto known = described_.find(key); known != described_.end()) return known->second;
  if (described_.size() >= kTablesMax) {
    described_.clear();
    loaded_.clear();
  }
  THALWEG_ASSIGN(const auto source, described_table(frame, ++descriptions_, names_));
  if (const Copy* const copy = copy_of(*source)) {
    source->copied_from = copy->from;
    source->copied_to = copy->to;
  }
  return described_[key] = source;
}

const ParkedTables::Copy* ParkedTables::copy_of(const SourceTable& source) const {
  auto copy = copies_.find(key_of(std::to_string(source.description.relation.value)));
  if (copy == copies_.end()) copy = copies_.find(source.quoted_name);
  return copy == copies_.end() ? nullptr : &copy->second;
}

bool ParkedTables::is_being_copied(const SourceTable& source) const {
  const Copy* const copy = copy_of(source);
  return copy != nullptr && !copy->is_finished;
}

base::Result<void> ParkedTables::load(const SourceTable& source) {
  if (names_.is_taken_out(source.description)) {
    loaded_.insert_or_assign(source.id, left_out(source));
    return {};
  }
  auto table = loader_.load(connection_, source);
  if (!table && !is_of_the_table(table.error())) return std::unexpected(std::move(table).error());
  loaded_.insert_or_assign(source.id, std::move(table));
  return {};
}

base::Result<void> ParkedTables::forget_changed() {
  std::erase_if(loaded_, [](const auto& entry) { return !entry.second; });  // it may have been mended
  std::vector<base::RelationId> oids;
  for (const auto& [id, table] : loaded_) oids.push_back((*table)->destination);
  if (oids.empty()) return {};
  THALWEG_ASSIGN(const auto versions, metadata::destination_versions(connection_, oids));
  const auto has_changed = [&](const auto& entry) {
    const TableMetadata& table = **entry.second;
    const auto now = std::ranges::find(versions, table.destination, &metadata::DestinationVersion::table);
    return now == versions.end() || now->version != table.destination_version;
  };
  if (std::erase_if(loaded_, has_changed) > 0) loader_.forget_types();
  return {};
}

void ParkedTables::forget(const SourceTable& source) {
  if (loaded_.erase(source.id) > 0) loader_.forget_types();
}

base::Result<const TableMetadata*> ParkedTables::find(const SourceTable& source) {
  const auto found = loaded_.find(source.id);
  if (found == loaded_.end()) return base::fail(ErrorCode::corrupt_frame, "a row came before its table's description");
  if (!found->second) return std::unexpected(found->second.error());
  return found->second->get();
}

}  // namespace thalweg::apply
