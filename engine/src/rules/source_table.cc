#include "rules/source_table.h"

#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "pg/text_array.h"

namespace thalweg::rules {

namespace {

// A column without a COLLATE of its own has the pseudo-collation "default", whose provider is 'd': the database's.
constexpr const char* kDatabase =
    "SELECT datlocprovider = 'c' AND datcollate IN ('C', 'POSIX'), pg_catalog.getdatabaseencoding() = 'UTF8' "
    "FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";
constexpr const char* kRelation = "SELECT relkind = 'p' FROM pg_catalog.pg_class WHERE oid = $1::oid";
// Columns that some partition's changes do not bring of an old row.
constexpr const char* kNotIdentifying =
    "SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::oid AND a.attnum > 0 AND EXISTS "
    "(SELECT FROM pg_catalog.pg_partition_tree($1::oid) t JOIN pg_catalog.pg_class l ON l.oid = t.relid "
    "WHERE t.isleaf AND l.relkind = 'r' AND l.relreplident <> 'f' AND NOT EXISTS "
    "(SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute k "
    "ON k.attrelid = l.oid AND k.attnum = ANY ((i.indkey::int2[])[:i.indnkeyatts - 1]) "
    "WHERE i.indrelid = l.oid AND k.attname = a.attname "
    "AND CASE l.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END))";
constexpr const char* kCollations =
    "SELECT a.attname, CASE WHEN NOT c.collisdeterministic THEN 'n' WHEN c.collprovider = 'd' THEN 'd' "
    "WHEN c.collprovider = 'c' AND c.collcollate IN ('C', 'POSIX') THEN 'c' ELSE 'o' END, c.oid "
    "FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation "
    "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped";
constexpr const char* kRelations =
    "SELECT r.oid, n.nspname, r.relname, r.relkind = 'p', r.relispartition, a.attname, a.atttypid, "
    "CASE WHEN c.oid IS NULL OR NOT c.collisdeterministic THEN 'n' WHEN c.collprovider = 'd' THEN 'd' "
    "WHEN c.collprovider = 'c' AND c.collcollate IN ('C', 'POSIX') THEN 'c' ELSE 'o' END, coalesce(c.oid, 0) "
    "FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace "
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid LEFT JOIN pg_catalog.pg_collation c ON c.oid = "
    "a.attcollation "
    "WHERE r.oid = ANY ($1::oid[]) AND r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped "
    "AND a.attgenerated = '' ORDER BY r.oid, a.attnum";
constexpr const char* kLabels =
    "SELECT enumtypid, enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = ANY ($1::oid[]) ORDER BY enumsortorder";
constexpr const char* kTable =
    "SELECT c.oid, c.relreplident FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')";
// Generated columns are not in the description of a table that changes come with. PostgreSQL stores nothing apart that
// has 24 bytes or less: varchar(5), numeric(30).
constexpr const char* kColumns =
    "SELECT a.attname, a.atttypid, c.relreplident = 'f' OR coalesce(a.attnum = ANY ((i.indkey::int2[])[:i.indnkeyatts "
    "- 1]), "
    "false), a.attstorage <> 'p' AND NOT (a.atttypmod >= 4 AND CASE a.atttypid "
    "WHEN 'pg_catalog.varchar'::pg_catalog.regtype THEN a.atttypmod <= 9 "
    "WHEN 'pg_catalog.bpchar'::pg_catalog.regtype THEN a.atttypmod <= 9 "
    "WHEN 'pg_catalog.numeric'::pg_catalog.regtype THEN (a.atttypmod - 4) >> 16 <= 30 ELSE false END) "
    "AND EXISTS (SELECT FROM pg_catalog.pg_class t WHERE t.reltoastrelid <> 0 AND (t.oid = c.oid OR t.oid IN "
    "(SELECT p.relid FROM pg_catalog.pg_partition_tree(c.oid) p))) "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
    "LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary "
    "WHEN 'i' THEN i.indisreplident ELSE false END "
    "WHERE c.oid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum";

constexpr uint32_t kFirstUserType = 16'384;  // OIDs below are PostgreSQL's own, among which there is no enum

struct ColumnCollation {
  Collation kind;
  uint32_t id;
};
Collation collation_of(char kind, Collation database) {
  switch (kind) {
    case 'd':
      return database;
    case 'c':
      return Collation::c;
    case 'n':
      return Collation::nondeterministic;
    default:
      return Collation::other;
  }
}

using Collations = std::map<std::string, ColumnCollation, std::less<>>;

base::Result<Collations> read_collations(pg::Connection& source, const std::string& relation, Collation database) {
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kCollations, {relation}));
  Collations found;
  for (size_t i = 0; i < rows.size(); ++i) {
    found.emplace(rows.text(i, 0), ColumnCollation{.kind = collation_of(rows.text(i, 1).front(), database),
                                                   .id = static_cast<uint32_t>(rows.integer(i, 2))});
  }
  return found;
}

base::Result<void> read_labels(pg::Connection& source, std::span<RuleTable* const> tables) {
  std::map<uint32_t, std::vector<RuleColumn*>> columns;  // by type
  for (RuleTable* const table : tables) {
    for (RuleColumn& column : table->columns) {
      if (column.type.value >= kFirstUserType) columns[column.type.value].push_back(&column);
    }
  }
  if (columns.empty()) return {};
  std::vector<std::string> types;
  for (const auto& [type, its_columns] : columns) types.push_back(std::to_string(type));
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kLabels, {pg::text_array(types)}));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (RuleColumn* const column : columns.at(static_cast<uint32_t>(rows.integer(i, 0)))) {
      column->enum_labels.emplace_back(rows.text(i, 1));
    }
  }
  return {};
}

base::Result<void> read_database(pg::Connection& source, RuleTable& table) {
  THALWEG_ASSIGN(const pg::Rows database, source.query(kDatabase));
  table.database_collation = database.size() == 1 && database.boolean(0, 0) ? Collation::c : Collation::other;
  table.is_utf8 = database.size() == 1 && database.boolean(0, 1);
  return {};
}

base::Result<void> disbelieve_partitions(pg::Connection& source, const std::string& relation, RuleTable& table) {
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kNotIdentifying, {relation}));
  std::set<std::string, std::less<>> missing;
  for (size_t i = 0; i < rows.size(); ++i) missing.emplace(rows.text(i, 0));
  for (RuleColumn& column : table.columns) {
    if (table.replica_identity == 'f' || missing.contains(column.name)) column.is_key = false;
  }
  return {};
}

}  // namespace

base::Result<bool> complete(pg::Connection& source, base::RelationId relation, RuleTable& table) {
  const std::string oid = std::to_string(relation.value);
  THALWEG_TRY(read_database(source, table));
  THALWEG_ASSIGN(const pg::Rows found, source.query(kRelation, {oid}));
  table.is_partitioned = found.size() == 0 || found.boolean(0, 0);
  THALWEG_ASSIGN(const Collations collations, read_collations(source, oid, table.database_collation));
  for (RuleColumn& column : table.columns) {
    const auto collation = collations.find(column.name);
    column.collation = collation == collations.end() ? Collation::nondeterministic : collation->second.kind;
    column.collation_id = collation == collations.end() ? 0 : collation->second.id;
  }
  if (table.is_partitioned) THALWEG_TRY(disbelieve_partitions(source, oid, table));
  THALWEG_TRY(read_labels(source, std::array{&table}));
  return found.size() > 0;
}

base::Result<std::optional<RuleTable>> read_table(pg::Connection& source, std::string_view schema,
                                                  std::string_view table) {
  THALWEG_ASSIGN(const pg::Rows found, source.query(kTable, {schema, table}));
  if (found.size() == 0) return std::nullopt;
  RuleTable made{.schema = std::string(schema),
                 .name = std::string(table),
                 .replica_identity = found.text(0, 1).front(),
                 .columns = {}};
  THALWEG_ASSIGN(const pg::Rows columns, source.query(kColumns, {found.text(0, 0)}));
  for (size_t i = 0; i < columns.size(); ++i) {
    made.columns.push_back({.name = std::string(columns.text(i, 0)),
                            .type = {static_cast<uint32_t>(columns.integer(i, 1))},
                            .is_key = columns.boolean(i, 2),
                            .enum_labels = {},
                            .may_be_long = columns.boolean(i, 3)});
  }
  THALWEG_TRY(complete(source, {static_cast<uint32_t>(found.integer(0, 0))}, made));
  return made;
}

base::Result<std::vector<RelationNow>> read_relations(pg::Connection& source,
                                                      const std::vector<base::RelationId>& relations) {
  std::vector<std::string> oids;
  for (const base::RelationId relation : relations) oids.push_back(std::to_string(relation.value));
  if (oids.empty()) return std::vector<RelationNow>{};
  RuleTable of_database;
  THALWEG_TRY(read_database(source, of_database));
  THALWEG_ASSIGN(const pg::Rows rows, source.query(kRelations, {pg::text_array(oids)}));
  std::vector<RelationNow> found;
  for (size_t i = 0; i < rows.size(); ++i) {
    const base::RelationId relation{static_cast<uint32_t>(rows.integer(i, 0))};
    if (found.empty() || !(found.back().relation == relation)) {
      RelationNow& now = found.emplace_back(relation, rows.boolean(i, 4), of_database);
      now.table.schema = rows.text(i, 1);
      now.table.name = rows.text(i, 2);
      now.table.is_partitioned = rows.boolean(i, 3);
    }
    found.back().table.columns.push_back(
        {.name = std::string(rows.text(i, 5)),
         .type = {static_cast<uint32_t>(rows.integer(i, 6))},
         .collation = collation_of(rows.text(i, 7).front(), of_database.database_collation),
         .collation_id = static_cast<uint32_t>(rows.integer(i, 8)),
         .enum_labels = {}});
  }
  std::vector<RuleTable*> tables;
  for (RelationNow& now : found) tables.push_back(&now.table);
  THALWEG_TRY(read_labels(source, tables));
  return found;
}

}  // namespace thalweg::rules
