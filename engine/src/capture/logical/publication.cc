#include "capture/logical/publication.h"

#include <algorithm>

#include <fmt/format.h>

#include "pg/replica_identity.h"

namespace thalweg::capture {

namespace {

std::string options_of(Operations operations) {
  return fmt::format("publish = '{}', publish_via_partition_root = true",
                     operations == Operations::all ? "insert, update, delete, truncate" : "insert, truncate");
}

std::vector<PublishedTable> sorted(std::vector<PublishedTable> tables) {
  std::ranges::sort(tables);
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return tables;
}

// One row where it is there: whether it publishes what it should, whether of all tables.
base::Result<pg::Rows> find_publication(pg::Connection& connection, const std::string& name, Operations operations) {
  const std::string_view rows_change = operations == Operations::all ? "true" : "false";
  return connection.query(
      "SELECT pubinsert AND pubtruncate AND pubviaroot AND pubupdate = $2::boolean "
      "AND pubdelete = $2::boolean, puballtables FROM pg_publication WHERE pubname = $1",
      {name, rows_change});
}

base::Result<bool> is_published(pg::Connection& connection, const std::string& name,
                                const std::vector<PublishedTable>& tables, Operations operations) {
  THALWEG_ASSIGN(const pg::Rows found, find_publication(connection, name, operations));
  if (found.size() == 0 || !found.boolean(0, 0) || found.boolean(0, 1)) return false;
  THALWEG_ASSIGN(const auto present, published_tables(connection, name));
  return present == sorted(tables);
}

// ONLY keeps inheritance children out, which are tables of their own; partitions belong to their root with or without.
std::string table_list(const std::vector<PublishedTable>& tables) {
  std::string list;
  for (const auto& table : tables) {
    list += fmt::format("{}ONLY {}", list.empty() ? "" : ", ", pg::quote_table(table.schema_name, table.table_name));
  }
  return list;
}

std::vector<PublishedTable> read_tables(const pg::Rows& rows) {
  std::vector<PublishedTable> tables;
  for (size_t row = 0; row < rows.size(); ++row) {
    tables.push_back({.schema_name = std::string{rows.text(row, 0)}, .table_name = std::string{rows.text(row, 1)}});
  }
  std::ranges::sort(tables);
  return tables;
}

// pg/ takes whoever is written for a destination; a publication is made at the source.
base::Result<void> change(pg::Connection& source, const std::string& sql) {
  auto changed = source.query(sql);
  if (changed) return {};
  base::Error error = std::move(changed).error();
  if (error.code == base::ErrorCode::destination_read_only) error.code = base::ErrorCode::source_read_only;
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<std::vector<PublishedTable>> published_tables(pg::Connection& connection, const std::string& name) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT n.nspname, c.relname FROM pg_publication p "
                                  "JOIN pg_publication_rel r ON r.prpubid = p.oid "
                                  "JOIN pg_class c ON c.oid = r.prrelid "
                                  "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = $1",
                                  {name}));
  return read_tables(rows);
}

namespace {

// The ones among `tables` for which `condition` holds.
base::Result<std::vector<PublishedTable>> tables_where(pg::Connection& connection,
                                                       const std::vector<PublishedTable>& tables,
                                                       std::string_view condition) {
  std::string names;
  for (const auto& table : tables) {
    names += fmt::format("{}({}, {})", names.empty() ? "" : ", ", connection.quote_literal(table.schema_name),
                         connection.quote_literal(table.table_name));
  }
  if (names.empty()) return std::vector<PublishedTable>{};
  THALWEG_ASSIGN(
      const pg::Rows rows,
      connection.query(fmt::format(
          "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
          "ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND (n.nspname, c.relname) IN ({}) AND {}",
          names, condition)));
  return read_tables(rows);
}

}  // namespace

base::Result<std::vector<PublishedTable>> existing_tables(pg::Connection& connection,
                                                          const std::vector<PublishedTable>& tables) {
  return tables_where(connection, tables, "true");
}

base::Result<std::vector<PublishedTable>> identified_tables(pg::Connection& connection,
                                                            const std::vector<PublishedTable>& tables) {
  // Of a partitioned table it is the leaf whose row is updated that has to have one; leaves to come get the root's key.
  return tables_where(
      connection, tables,
      fmt::format("NOT EXISTS (SELECT 1 FROM (SELECT c.oid WHERE NOT EXISTS (SELECT 1 FROM "
                  "pg_catalog.pg_partition_tree(c.oid) WHERE isleaf) UNION ALL SELECT relid FROM "
                  "pg_catalog.pg_partition_tree(c.oid) WHERE isleaf) t (leaf) JOIN pg_catalog.pg_class r ON r.oid = "
                  "t.leaf WHERE (r.relkind = 'p' AND r.relreplident = 'f') OR NOT {})",
                  pg::has_replica_identity("r")));
}

base::Result<bool> are_published(pg::Connection& connection, const pg::PublicationNames& names,
                                 const StreamTables& tables) {
  THALWEG_ASSIGN(const bool changes, is_published(connection, names.changes, tables.changes, Operations::all));
  THALWEG_ASSIGN(const bool inserts, is_published(connection, names.inserts, tables.inserts, Operations::inserts));
  return changes && inserts;
}

base::Result<std::string> publications_as_they_are(pg::Connection& connection, const pg::PublicationNames& names) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT string_agg(concat_ws(' ', p.oid, p.xmin, (SELECT string_agg(r.oid || ':' || "
                                  "r.prrelid, ',' ORDER BY r.oid) FROM pg_publication_rel r WHERE r.prpubid = p.oid)), "
                                  "'; ' ORDER BY p.oid) FROM pg_publication p WHERE p.pubname IN ($1, $2)",
                                  {names.changes, names.inserts}));
  return std::string{rows.is_null(0, 0) ? "" : rows.text(0, 0)};
}

base::Result<void> ensure_publication(pg::Connection& connection, const std::string& name,
                                      const std::vector<PublishedTable>& tables, Operations operations) {
  const std::string quoted = pg::quote_identifier(name);
  THALWEG_ASSIGN(const pg::Rows found, find_publication(connection, name, operations));
  if (found.size() > 0 && found.boolean(0, 1)) THALWEG_TRY(drop_publication(connection, name));
  if (found.size() == 0 || found.boolean(0, 1)) {
    const std::string list = tables.empty() ? "" : " FOR TABLE " + table_list(tables);
    return change(connection, fmt::format("CREATE PUBLICATION {}{} WITH ({})", quoted, list, options_of(operations)));
  }
  if (!found.boolean(0, 0)) {
    THALWEG_TRY(change(connection, fmt::format("ALTER PUBLICATION {} SET ({})", quoted, options_of(operations))));
  }
  THALWEG_ASSIGN(const auto present, published_tables(connection, name));
  const std::vector<PublishedTable> wanted = sorted(tables);
  if (wanted == present) return {};
  const std::string tables_changed =
      wanted.empty() ? "DROP TABLE " + table_list(present) : "SET TABLE " + table_list(wanted);
  return change(connection, fmt::format("ALTER PUBLICATION {} {}", quoted, tables_changed));
}

base::Result<void> ensure_publications(pg::Connection& connection, const pg::PublicationNames& names,
                                       const StreamTables& tables, bool before_slot) {
  THALWEG_ASSIGN(const pg::Rows second,
                 connection.query("SELECT FROM pg_publication WHERE pubname = $1", {names.inserts}));
  if (second.size() == 0 && !before_slot) {
    if (tables.inserts.empty()) return ensure_publication(connection, names.changes, tables.changes);
    return base::fail(base::ErrorCode::publication_lost,
                      fmt::format("The source has no publication {}, which tables of which only inserts are "
                                  "replicated need: somebody dropped it, or an older engine made the stream.",
                                  names.inserts));
  }
  THALWEG_TRY(connection.script("BEGIN"));
  auto ensured = ensure_publication(connection, names.changes, tables.changes);
  if (ensured) ensured = ensure_publication(connection, names.inserts, tables.inserts, Operations::inserts);
  if (!ensured) {
    if (!connection.broken()) static_cast<void>(connection.script("ROLLBACK"));  // the first failure is the answer
    return ensured;
  }
  THALWEG_TRY(connection.script("COMMIT"));
  return {};
}

base::Result<void> drop_publication(pg::Connection& connection, const std::string& name) {
  return change(connection, "DROP PUBLICATION IF EXISTS " + pg::quote_identifier(name));
}

base::Result<void> drop_publications(pg::Connection& connection, const pg::PublicationNames& names) {
  THALWEG_TRY(drop_publication(connection, names.changes));
  return drop_publication(connection, names.inserts);
}

}  // namespace thalweg::capture
