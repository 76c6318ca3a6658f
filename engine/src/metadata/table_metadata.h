#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "metadata/type_catalog.h"
#include "pg/connection.h"

// What apply has to know of a table: the version that a TABLE frame describes, laid over the destination's table.

namespace thalweg::metadata {

// A column that came from the source. Indexes into TableMetadata::columns are places in the source's tuples.
struct Column {
  std::string name;
  std::string quoted_name;
  base::TypeId source_type;
  std::shared_ptr<const TypeNode> type;  // at the destination
  int16_t attribute = 0;                 // attnum at the destination
  bool source_key = false;               // part of the source's replica identity
  bool written = true;                   // false: generated at the destination, never written
  // GENERATED ALWAYS AS IDENTITY at the destination: INSERT can override it, UPDATE cannot.
  bool identity_always = false;
  // A value can be an element of an array parameter for unnest(): not an array itself, not a composite.
  bool in_sets = true;
  // `=` of the type holds for the same bytes only, so that an index may look for a value.
  bool exact_equality = false;
};

// A unique index of the destination whose columns all come from the source.
struct UniqueKey {
  uint32_t index = 0;             // pg_class.oid of the index: the seed of its hashes
  std::vector<uint16_t> columns;  // in the index's order
  bool nulls_collide = false;     // NULLS NOT DISTINCT
  bool is_referenced = false;     // some foreign key points at it
};

// A foreign key of this table; `columns` stand in the order of the parent's index, whose oid is `parent_index`.
struct ForeignKey {
  uint32_t parent_index = 0;
  std::vector<uint16_t> columns;
};

// Immutable; shared by reader, coordinator and appliers.
struct TableMetadata {
  lcr::TableDescription source;
  std::vector<std::byte> frame;  // the TABLE frame, for the error queue
  base::RelationId destination;  // pg_class.oid there
  std::string quoted_name;
  bool is_partitioned = false;
  std::vector<Column> columns;
  // How a row is found: columns of a key, empty for tables without one.
  std::vector<uint16_t> identity;
  uint32_t identity_index = 0;  // the destination's index over `identity`, 0 where it has none
  std::vector<UniqueKey> unique_keys;
  std::vector<ForeignKey> foreign_keys;
  uint64_t table_hash = 0;  // stands for the whole table
  // Initial copy (apply.h, CatchUpSpan).
  base::Lsn copied_from;
  base::Lsn copied_to;

  bool keyless() const { return identity.empty(); }
};

// All tables that have been described so far. Immutable: the reader publishes a new one for each TABLE frame, and
// transactions keep the one that they were assembled with.
class TableMap {
 public:
  const TableMetadata* find(base::RelationId relation, uint32_t version) const {
    const auto found = tables_.find(key(relation, version));
    return found == tables_.end() ? nullptr : found->second.get();
  }
  // The version described last; TRUNCATE names no version.
  const TableMetadata* latest(base::RelationId relation) const {
    const auto found = latest_.find(relation);
    return found == latest_.end() ? nullptr : found->second.get();
  }
  std::shared_ptr<const TableMap> with(std::shared_ptr<const TableMetadata> table) const;

 private:
  static uint64_t key(base::RelationId relation, uint32_t version) {
    return static_cast<uint64_t>(relation.value) << 32 | version;
  }
  std::unordered_map<uint64_t, std::shared_ptr<const TableMetadata>> tables_;
  std::unordered_map<base::RelationId, std::shared_ptr<const TableMetadata>> latest_;
};

// Looks a table up at the destination. Owner: one thread.
class TableLoader {
 public:
  // Fails with missing_table or destination_table_differs (the message says what differs), or as a query fails.
  base::Result<std::shared_ptr<TableMetadata>> load(pg::Connection& connection, const lcr::TableDescription& source,
                                                    std::span<const std::byte> frame);

 private:
  TypeCatalog types_;
};

}  // namespace thalweg::metadata
