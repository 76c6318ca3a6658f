#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "metadata/key_hash.h"
#include "metadata/source_table.h"
#include "metadata/statement_handler.h"
#include "metadata/type_catalog.h"
#include "pg/connection.h"

// Apply's knowledge of a table: the version that a TABLE frame describes, matched with the destination's table.

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
  // Of a column in TableMetadata::compared that has a type modifier: the type with it, for a cast. Else empty.
  std::string stored_as = {};
  KeyForm key_form = KeyForm::unknown;
};

// A uniqueness constraint of the destination: a unique index or an exclusion constraint.
struct UniqueKey {
  uint32_t index = 0;             // pg_class.oid of the index: the seed of its hashes
  std::vector<uint16_t> columns;  // in the index's order
  bool nulls_collide = false;     // NULLS NOT DISTINCT
  bool is_referenced = false;     // some foreign key points at it
  // Two rows collide where `columns` are equal, and their bytes decide whether they are. Otherwise rows that collide
  // agree in `columns` (none at all, perhaps), and others may: partial and expression indexes, exclusion constraints,
  // columns of the destination's own, types of an unknown form, an equality that is not the type's usual one.
  bool is_exact = true;
  // A row that has equal `columns` collides at once: no condition, no expression, no column that the source does not
  // send, not deferrable.
  bool is_whole = false;
};

// A foreign key of this table; `columns` stand in the order of the parent's index, whose oid is `parent_index`.
struct ForeignKey {
  uint32_t parent_index = 0;
  std::vector<uint16_t> columns;
};

// Immutable. Owner: the metadata cache, or the thread that loaded it for itself; metadata_cache.h has its lifetime.
struct TableMetadata {
  // The number of this object. No other object of this apply ever has it (although one may have its address). It is the
  // key for caches of things derived from it, such as prepared statements.
  uint64_t generation = 0;
  uint64_t source_id = 0;  // SourceTable::id
  lcr::TableDescription source;
  base::RelationId destination;     // pg_class.oid there
  int64_t destination_version = 0;  // destination_version.h; read before everything else
  std::string quoted_name;
  bool is_partitioned = false;
  // Without those of tables that inherit from it: they are tables of their own. For all statements but INSERT and COPY.
  std::string own_rows() const { return (is_partitioned ? "" : "ONLY ") + quoted_name; }
  // Triggers enabled ALWAYS or REPLICA, which fire for applied changes and see each row of them. Internal ones count.
  bool has_triggers = false;
  std::vector<Column> columns;
  // How a row is found: columns of a key, empty for tables without one.
  std::vector<uint16_t> identity;
  uint32_t identity_index = 0;  // the destination's index over `identity`, 0 where it has none
  // Equal values of `identity` may have other bytes: the key's hashes order its rows, but do not tell one from another.
  bool identity_is_possible = false;
  std::vector<UniqueKey> unique_keys;
  std::vector<ForeignKey> foreign_keys;
  uint64_t table_hash = 0;  // stands for the whole table
  // The same for the tables that its foreign keys reference, whatever their columns; distinct.
  std::vector<uint64_t> parent_hashes;
  bool is_referenced = false;  // some foreign key points at it
  // Columns whose old value an update or delete has to find in the row, else it is a conflict (ComparedTable). Never
  // those of the identity.
  std::vector<uint16_t> compared;
  std::vector<HandlerStatement> statements;        // of its changes, in the order of the parameter
  std::vector<HandlerStatement> error_statements;  // of those that fail: nobody else need look at them
  // Initial copy (apply.h, CatchUpSpan).
  base::Lsn copied_from;
  base::Lsn copied_to;

  bool keyless() const { return identity.empty(); }
};

// The columns of a table that are compared (docs/decisions/conflicts.md). Immutable.
struct ComparedTable {
  std::string table = {};                 // schema-qualified and quoted, as at the destination; empty: any
  std::vector<std::string> columns = {};  // empty: all
  std::vector<std::string> except = {};   // that the source does not have as they are sent
  bool operator==(const ComparedTable&) const = default;
};

// Memory of one table's metadata, without the types, which tables share.
size_t heap_bytes(const TableMetadata& table);

// Looks a table up at the destination. Owner: one thread.
class TableLoader {
 public:
  // `generations`: where the numbers of TableMetadata come from. Writers: all loaders that share it (relaxed: they only
  // have to differ). `compared`: the first that matches a table; `handlers`: all that do. They must live as long as the
  // loader.
  explicit TableLoader(std::atomic<uint64_t>& generations, std::span<const ComparedTable> compared = {},
                       std::span<const StatementHandler> handlers = {})
      : generations_(generations), compared_(compared), handlers_(handlers) {}

  // Fails with missing_table or destination_table_differs (the message says what differs), or as a query fails.
  base::Result<std::unique_ptr<const TableMetadata>> load(pg::Connection& connection, const SourceTable& source);
  // The next load asks for types again: one of them may have been altered.
  void forget_types() { types_ = {}; }

 private:
  base::Result<void> choose_compared(pg::Connection& connection, TableMetadata& table) const;

  std::atomic<uint64_t>& generations_;
  const std::span<const ComparedTable> compared_;
  const std::span<const StatementHandler> handlers_;
  TypeCatalog types_;
};

}  // namespace thalweg::metadata
