#include "instantiation/source_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "pg/replica_identity.h"

namespace thalweg::instantiation {
namespace {

using nlohmann::json;

constexpr const char* kPublications =
    "SELECT pubname = $1, pubinsert AND pubtruncate AND pubviaroot, pubupdate, pubdelete "
    "FROM pg_catalog.pg_publication WHERE pubname IN ($1, $2)";

const std::string kTables =
    "SELECT c.oid, n.nspname, c.relname, c.relkind = 'p', r.oid, i.oid, c.relreplident = 'd', " +
    pg::has_replica_identity("c") +
    " "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_catalog.pg_publication_rel r ON r.prrelid = c.oid "
    "AND r.prpubid = (SELECT p.oid FROM pg_catalog.pg_publication p WHERE p.pubname = $1) "
    "LEFT JOIN pg_catalog.pg_publication_rel i ON i.prrelid = c.oid "
    "AND i.prpubid = (SELECT p.oid FROM pg_catalog.pg_publication p WHERE p.pubname = $2) "
    "WHERE c.relkind IN ('r', 'p') AND (c.oid = ANY ($3::oid[]) "
    "OR (n.nspname, c.relname) IN (SELECT e->>0, e->>1 FROM jsonb_array_elements($4::jsonb) e))";

// As 32 bits, which is what the WAL has of them. A snapshot lists those below its xmax alone.
constexpr const char* kRunning =
    "SELECT pg_catalog.pg_snapshot_xmax(s.now)::text::numeric % 4294967296, xid::text::numeric % 4294967296 "
    "FROM (SELECT pg_catalog.pg_current_snapshot() AS now) s LEFT JOIN LATERAL pg_catalog.pg_snapshot_xip(s.now) xid "
    "ON true";

// Not pg_partition_tree, which waits for whoever changes the tree.
const std::string kLeaves =
    "WITH RECURSIVE tree (root, relation, attached) AS (SELECT o, o, 0::bigint FROM unnest($1::oid[]) o UNION ALL "
    "SELECT t.root, i.inhrelid, (t.attached * 31 + i.xmin::text::bigint) % 4294967291 + 1 FROM tree t "
    "JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relation AND NOT i.inhdetachpending) "
    "SELECT t.root, c.oid, c.relfilenode, n.nspname, c.relname, c.relkind <> 'r' OR c.relpersistence <> 'p', "
    "c.xmin::text, " +
    pg::has_replica_identity("c") +
    ", t.attached FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.relation AND c.relkind <> 'p' "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid";

// The index that their replica identity names, and the best that could be it instead, of each of these relations.
const std::string kLostIdentities =
    "SELECT c.oid, n.nspname, c.relname, c.relreplident = 'n', c.relreplident = 'd', own.is_valid, own.is_immediate, "
    "usable.relname, usable.indisprimary "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN LATERAL (SELECT i.indisvalid AS is_valid, i.indimmediate AS is_immediate FROM pg_catalog.pg_index i "
    "WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END "
    "LIMIT 1) own ON true "
    "LEFT JOIN LATERAL (SELECT x.relname, i.indisprimary "
    "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid "
    "WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND NOT i.indisexclusion "
    "AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a "
    "WHERE a.attrelid = c.oid AND (a.attnum = ANY (i.indkey) AND a.attgenerated <> '' "
    "OR a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]) AND NOT a.attnotnull)) "
    "ORDER BY i.indisprimary DESC, i.indnkeyatts, x.relname LIMIT 1) usable ON true "
    "WHERE c.oid = ANY ($1::oid[]) AND NOT " +
    pg::has_replica_identity("c");

uint32_t oid_at(const pg::Rows& rows, size_t row, size_t column) {
  return rows.is_null(row, column) ? 0 : static_cast<uint32_t>(rows.integer(row, column));
}

TableName name_at(const pg::Rows& rows, size_t row, size_t column) {
  return {std::string(rows.text(row, column)), std::string(rows.text(row, column + 1))};
}

std::string array_of(const std::set<uint32_t>& oids) { return fmt::format("{{{}}}", fmt::join(oids, ",")); }

// The kinds of change that each of the two publications sends.
class Publications {
 public:
  explicit Publications(const pg::Rows& rows) {
    for (size_t row = 0; row < rows.size(); ++row) {
      const bool any_update = rows.boolean(row, 2) || rows.boolean(row, 3);
      const bool all_updates = rows.boolean(row, 2) && rows.boolean(row, 3);
      Published sent = all_updates ? Published::changes : Published::nothing;
      if (!any_update) sent = Published::inserts;
      if (!rows.boolean(row, 1)) sent = Published::nothing;
      (rows.boolean(row, 0) ? first_ : second_) = sent;
    }
  }

  // PostgreSQL sends what any of them publishes.
  Published of(bool in_first, bool in_second) const {
    if (!first_) return Published::unknown;
    const Published by_first = in_first ? *first_ : Published::nothing;
    return in_second ? std::max(by_first, second_.value_or(Published::nothing)) : by_first;
  }

 private:
  std::optional<Published> first_, second_;
};

// Of a leaf and each partition between it and its root: whether one was attached, as its catalog rows show. They are of
// several transactions then. Or of one, and each column's is of another command than the one that made the table, or
// gave the column its default: ATTACH PARTITION writes those of all columns anew (MergeAttributesIntoExisting of
// src/backend/commands/tablecmds.c). Replayed rows have no numbers of commands (heap_xlog_insert): all look alike.
constexpr const char* kAttached =
    "WITH RECURSIVE up (relation, parent, attached_by) AS (SELECT inhrelid, inhparent, xmin FROM "
    "pg_catalog.pg_inherits "
    "WHERE inhrelid = $1::oid UNION ALL SELECT i.inhrelid, i.inhparent, i.xmin FROM up JOIN pg_catalog.pg_inherits i "
    "ON i.inhrelid = up.parent WHERE up.parent <> $2::oid), "
    "level AS (SELECT bool_or(made.xmin <> up.attached_by) OR NOT coalesce(bool_or(col.xmin = made.xmin AND "
    "col.cmin = made.cmin OR col.xmin = given.xmin AND col.cmin = given.cmin), false) AS is_attached "
    "FROM up JOIN pg_catalog.pg_attribute made ON made.attrelid = up.relation AND made.attnum = -1 "
    "LEFT JOIN pg_catalog.pg_attribute col ON col.attrelid = up.relation AND col.attnum > 0 "
    "LEFT JOIN pg_catalog.pg_attrdef given ON given.adrelid = up.relation AND given.adnum = col.attnum "
    "GROUP BY up.relation) SELECT coalesce(bool_or(is_attached), true) FROM level";

// A partition that was created as one has had all its rows through its root; its transaction says which it is. One that
// was a table before is given the benefit of no doubt.
base::Result<bool> came_with_rows(pg::Connection& source, const Leaf& leaf, uint32_t root) {
  const std::string relation = std::to_string(leaf.relation);
  THALWEG_ASSIGN(const pg::Rows attached, source.query(kAttached, {relation, std::to_string(root)}));
  const bool is_attached = attached.size() == 0 || attached.boolean(0, 0);
  THALWEG_TRY(source.script("SET row_security = off"));  // hidden rows are rows
  const std::string rows_of_leaf = fmt::format("SELECT EXISTS (SELECT FROM ONLY {} r", leaf.name.quoted());
  const auto rows = is_attached ? source.query(rows_of_leaf + ")")
                                : source.query(rows_of_leaf +
                                                   " WHERE r.xmin = (SELECT xmin FROM pg_catalog.pg_inherits WHERE "
                                                   "inhrelid = $1::oid))",
                                               {relation});
  if (rows) return rows->size() > 0 && rows->boolean(0, 0);
  if (rows.error().code == base::ErrorCode::insufficient_privilege) return true;
  return std::unexpected(rows.error());
}

// Relations and leaves of the watched tables, as they were copied.
struct Known {
  std::set<uint32_t> relations;
  std::set<uint32_t> leaves;
};

// Adds the leaves of the partitioned tables, and how far the WAL had come.
base::Result<void> look_at_leaves(pg::Connection& source, const Known& known, const std::set<uint32_t>& roots,
                                  SourceTables& out) {
  if (roots.empty()) return {};
  // Before the leaves, so that they show whatever has ended by then.
  THALWEG_ASSIGN(const pg::Rows running, source.query(kRunning));
  for (size_t i = 0; i < running.size(); ++i) {
    out.running_from = oid_at(running, i, 0);
    if (!running.is_null(i, 1)) out.running.insert(oid_at(running, i, 1));
  }
  THALWEG_ASSIGN(const pg::Rows leaves, source.query(kLeaves, {array_of(roots)}));
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto table = std::ranges::find_if(out.tables, [root = oid_at(leaves, i, 0)](const SourceTable& candidate) {
      return candidate.now.relation == root;
    });
    Leaf leaf{.relation = oid_at(leaves, i, 1),
              .file = oid_at(leaves, i, 2),
              .name = name_at(leaves, i, 3),
              .attached = oid_at(leaves, i, 8)};
    if (leaves.boolean(i, 5)) {
      table->outside_wal.push_back(leaf.relation);
    } else if (known.relations.contains(table->now.relation) && !known.leaves.contains(leaf.relation)) {
      THALWEG_ASSIGN(const bool with_rows, came_with_rows(source, leaf, table->now.relation));
      if (with_rows) table->with_rows.push_back(leaf.relation);
    }
    const bool is_published = table->published == Published::changes && !leaves.boolean(i, 5);
    if (is_published && !leaves.boolean(i, 7)) table->unidentified.push_back({.relation = leaf.relation});
    table->changed_by[leaf.relation] = oid_at(leaves, i, 6);
    table->now.leaves.push_back(std::move(leaf));
  }
  // Afterwards. A standby notes how far it has replayed right behind the commit that can be seen.
  THALWEG_ASSIGN(const pg::Rows end, source.query("SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
                                                  "ELSE pg_current_wal_insert_lsn() END"));
  out.wal_end = base::parse_lsn(end.text(0, 0)).value_or(base::Lsn{});
  return {};
}

IdentityFlaw flaw_at(const pg::Rows& rows, size_t row) {
  if (rows.boolean(row, 3)) return IdentityFlaw::nothing;
  if (rows.is_null(row, 5)) return rows.boolean(row, 4) ? IdentityFlaw::no_key : IdentityFlaw::dropped;
  if (!rows.boolean(row, 5)) return IdentityFlaw::invalid;
  return rows.boolean(row, 6) ? IdentityFlaw::generated : IdentityFlaw::deferrable;
}

// They are few, so that only they cost a look at all their indexes.
base::Result<void> describe_unidentified(pg::Connection& source, SourceTables& tables) {
  std::set<uint32_t> relations;
  for (const SourceTable& table : tables.tables) {
    for (const LostIdentity& lost : table.unidentified) relations.insert(lost.relation);
  }
  if (relations.empty()) return {};
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kLostIdentities, {array_of(relations)}));
  std::map<uint32_t, LostIdentity> described;
  for (size_t row = 0; row < rows.size(); ++row) {
    const uint32_t relation = oid_at(rows, row, 0);
    described.emplace(relation, LostIdentity{.relation = relation,
                                             .name = name_at(rows, row, 1),
                                             .flaw = flaw_at(rows, row),
                                             .usable_index = std::string(rows.text(row, 7)),
                                             .is_usable_index_primary = rows.boolean(row, 8)});
  }
  for (SourceTable& table : tables.tables) {
    // One that is not described has got an identity meanwhile.
    std::erase_if(table.unidentified, [&](const LostIdentity& lost) { return !described.contains(lost.relation); });
    for (LostIdentity& lost : table.unidentified) {
      lost = described.at(lost.relation);
      // Updates of a partition come with its root's key: no other index helps.
      const bool is_leaf = lost.relation != table.now.relation;
      if (is_leaf && !(table.has_primary_key && lost.is_usable_index_primary)) lost.usable_index.clear();
    }
  }
  return {};
}

}  // namespace

base::Result<SourceTables> look_at_source(pg::Connection& source, const pg::PublicationNames& publications,
                                          std::span<const WatchedTable> watched) {
  Known known;
  json names = json::array();
  for (const WatchedTable& table : watched) {
    if (table.was.relation != 0) known.relations.insert(table.was.relation);
    for (const Leaf& leaf : table.was.leaves) known.leaves.insert(leaf.relation);
    names.push_back({table.name.schema, table.name.name});
  }
  THALWEG_ASSIGN(const pg::Rows found, source.query(kPublications, {publications.changes, publications.inserts}));
  const Publications sent(found);
  THALWEG_ASSIGN(const pg::Rows tables, source.query(kTables, {publications.changes, publications.inserts,
                                                               array_of(known.relations), names.dump()}));
  SourceTables out;
  std::set<uint32_t> roots;
  for (size_t i = 0; i < tables.size(); ++i) {
    SourceTable table;
    table.now.relation = oid_at(tables, i, 0);
    table.name = name_at(tables, i, 1);
    if (tables.boolean(i, 3)) roots.insert(table.now.relation);
    const uint32_t in_first = oid_at(tables, i, 4);
    const uint32_t in_second = oid_at(tables, i, 5);
    table.published = sent.of(in_first != 0, in_second != 0);
    table.now.publication_entry = in_first != 0 ? in_first : in_second;
    table.now.inserts_only = table.published == Published::inserts;
    const bool is_identified = tables.boolean(i, 7);
    table.has_primary_key = is_identified && tables.boolean(i, 6);
    if (table.published == Published::changes && !tables.boolean(i, 3) && !is_identified) {
      table.unidentified.push_back({.relation = table.now.relation});
    }
    out.tables.push_back(std::move(table));
  }
  THALWEG_TRY(look_at_leaves(source, known, roots, out));
  THALWEG_TRY(describe_unidentified(source, out));
  return out;
}

}  // namespace thalweg::instantiation
