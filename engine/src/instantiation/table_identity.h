#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "instantiation/lost_identity.h"
#include "instantiation/table_name.h"

// The relation of the source that a stream's table is, and what has become of it (docs/decisions/table-identity.md). A
// name is not enough: another table may bear it tomorrow. Plain values and pure functions.

namespace thalweg::instantiation {

// A partition that holds rows itself.
struct Leaf {
  uint32_t relation = 0;  // pg_class.oid
  uint32_t file = 0;      // pg_class.relfilenode: another one after a TRUNCATE, or when it was rewritten
  TableName name;
  // A mix of pg_inherits.xmin of it and of the partitions between it and the root: another one once any of them was
  // detached and attached again; 0: not known, an older engine copied it
  uint32_t attached = 0;
  // PostgreSQL makes a relation with the file of its own number (heap_create), and a foreign table without one.
  uint32_t first_file() const { return file == 0 ? 0 : relation; }
  bool operator==(const Leaf&) const = default;
};

// The source's table as it was captured when it was copied.
struct TableIdentity {
  uint32_t relation = 0;  // pg_class.oid; 0: not known, an older engine copied it
  // pg_publication_rel.oid: another one where it was not published all the time; 0: not known
  uint32_t publication_entry = 0;
  bool inserts_only = false;  // updates and deletes have been given up
  std::vector<Leaf> leaves;   // of a partitioned table
  bool has_leaf(uint32_t leaf) const;
  bool operator==(const TableIdentity&) const = default;
};
std::string to_json(const TableIdentity& identity);
TableIdentity identity_from_json(std::string_view json);  // unknown where that is what the text says

// A partition through which rows have come, or that was truncated alone, as the source named it then.
struct WrittenLeaf {
  uint32_t relation = 0;  // pg_class.oid
  TableName name;
  base::Lsn commit_lsn;    // of the transaction that wrote to it
  uint32_t xid = 0;        // its top-level one
  bool truncated = false;  // by that transaction
  bool operator==(const WrittenLeaf&) const = default;
};

// A table as the source has it now.
enum class Published : uint8_t {
  unknown,  // there is no publication to look at
  nothing,  // or in part
  inserts,
  changes,
};
struct SourceTable {
  TableName name;
  TableIdentity now;
  Published published = Published::nothing;
  std::vector<uint32_t> with_rows;    // leaves that had rows already when they became partitions
  std::vector<uint32_t> outside_wal;  // leaves whose changes are in no WAL: unlogged ones, foreign tables
  // Each leaf's pg_class.xmin: the transaction, or subtransaction, that has changed its catalog row last.
  std::map<uint32_t, uint32_t> changed_by = {};
  bool has_primary_key = false;  // which identifies its rows
  // Leaves, or the table itself, without a replica identity; none where no updates are published
  std::vector<LostIdentity> unidentified = {};
};

struct SourceTables {
  std::vector<SourceTable> tables;
  base::Lsn wal_end = {};  // what is to be seen here committed below; zero where no table has partitions
  // Top-level transactions whose effect may not be to be seen here. They may have committed in the WAL: a commit that
  // waits for a synchronous standby is decoded before anybody sees it.
  std::set<uint32_t> running = {};
  uint32_t running_from = 0;  // and all from this one on (modulo 2^32); zero: none
  base::Lsn applied = {};     // what commits below is at the destination
  // Whether what became of the partition can be seen here, and its rows are at the destination.
  bool tells_of(const WrittenLeaf& leaf) const;
  const SourceTable* find(uint32_t relation) const;
  SourceTable* find(uint32_t relation);
  const SourceTable* find(const TableName& name) const;
};

enum class TroubleKind : uint8_t { dropped, replaced, renamed, unpublished, partitions_changed, unidentified };
std::string_view name_of(TroubleKind kind);  // "DROPPED", "PARTITIONS CHANGED"
std::optional<TroubleKind> trouble_kind(std::string_view name);

// Trouble that keeps the destination's table from matching the source's.
struct TableTrouble {
  TroubleKind kind = TroubleKind::dropped;
  std::string reason;
  base::UnixMicros since;
  TableName now;  // where it loses nothing: its name now
  // Of unidentified: how the source cures it, in words, and its statements alone
  std::string cure = {};
  std::string cure_sql = {};

  // Its changes go on arriving whole: nothing is lost. Those of unidentified rows fail at the source.
  bool loses_nothing() const { return kind == TroubleKind::renamed || kind == TroubleKind::unidentified; }
};
std::string cure_of(const TableTrouble& trouble, bool stopped);

// `name` was captured as `was`. None where it still is that, and all of its rows come. `written`: leaves that had rows
// of it since, or before; those that no look has ever seen are missing now. And those that were truncated alone.
std::optional<TableTrouble> examine(const TableName& name, const TableIdentity& was, const SourceTables& now,
                                    std::span<const WrittenLeaf> written = {});

}  // namespace thalweg::instantiation
