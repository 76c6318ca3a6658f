#include "capture/logical/publication.h"

#include <algorithm>

#include <fmt/format.h>

namespace thalweg::capture {

namespace {

constexpr std::string_view kOptions = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true";

constexpr const char* kFound =
    "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot, puballtables FROM pg_publication "
    "WHERE pubname = $1";

std::vector<PublishedTable> sorted(std::vector<PublishedTable> tables) {
  std::ranges::sort(tables);
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return tables;
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

base::Result<std::vector<PublishedTable>> existing_tables(pg::Connection& connection,
                                                          const std::vector<PublishedTable>& tables) {
  std::string names;
  for (const auto& table : tables) {
    names += fmt::format("{}({}, {})", names.empty() ? "" : ", ", connection.quote_literal(table.schema_name),
                         connection.quote_literal(table.table_name));
  }
  if (names.empty()) return std::vector<PublishedTable>{};
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format(
                     "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
                     "ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND (n.nspname, c.relname) IN ({})",
                     names)));
  return read_tables(rows);
}

base::Result<bool> is_published(pg::Connection& connection, const std::string& name,
                                const std::vector<PublishedTable>& tables) {
  THALWEG_ASSIGN(const pg::Rows found, connection.query(kFound, {name}));
  if (found.size() == 0 || !found.boolean(0, 0) || found.boolean(0, 1)) return false;
  THALWEG_ASSIGN(const auto present, published_tables(connection, name));
  return present == sorted(tables);
}

base::Result<std::string> publication_as_it_is(pg::Connection& connection, const std::string& name) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT concat_ws(' ', p.oid, p.xmin, string_agg(r.oid || ':' || r.prrelid, ',' "
                                  "ORDER BY r.oid)) FROM pg_publication p "
                                  "LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid WHERE p.pubname = $1 "
                                  "GROUP BY p.oid, p.xmin",
                                  {name}));
  return std::string{rows.text(0, 0)};
}

base::Result<void> ensure_publication(pg::Connection& connection, const std::string& name,
                                      const std::vector<PublishedTable>& tables) {
  const std::string quoted = pg::quote_identifier(name);
  THALWEG_ASSIGN(const pg::Rows found, connection.query(kFound, {name}));
  if (found.size() > 0 && found.boolean(0, 1)) THALWEG_TRY(drop_publication(connection, name));
  if (found.size() == 0 || found.boolean(0, 1)) {
    const std::string list = tables.empty() ? "" : " FOR TABLE " + table_list(tables);
    return change(connection, fmt::format("CREATE PUBLICATION {}{} WITH ({})", quoted, list, kOptions));
  }
  if (!found.boolean(0, 0)) {
    THALWEG_TRY(change(connection, fmt::format("ALTER PUBLICATION {} SET ({})", quoted, kOptions)));
  }
  THALWEG_ASSIGN(const auto present, published_tables(connection, name));
  const std::vector<PublishedTable> wanted = sorted(tables);
  if (wanted == present) return {};
  const std::string tables_changed =
      wanted.empty() ? "DROP TABLE " + table_list(present) : "SET TABLE " + table_list(wanted);
  return change(connection, fmt::format("ALTER PUBLICATION {} {}", quoted, tables_changed));
}

base::Result<void> drop_publication(pg::Connection& connection, const std::string& name) {
  return change(connection, "DROP PUBLICATION IF EXISTS " + pg::quote_identifier(name));
}

}  // namespace thalweg::capture
