#include "metadata/destination_version.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace thalweg::metadata {

// A catalog row that was changed has another xmin; freezing it, VACUUM and ANALYZE leave xmin as it is. Of pg_class
// only the name counts: TRUNCATE and rewrites change its row for reasons of storage. A foreign key's triggers stand on
// both tables and are found by an index; pg_constraint has none for the referenced one.
std::string destination_version_sql() {
  return "pg_catalog.hashtextextended(pg_catalog.concat_ws('/', n.nspname, c.relname, c.relkind, "
         "(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', a.attnum, a.xmin), ',' ORDER BY a.attnum) "
         "FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), "
         "(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', i.indexrelid, i.xmin), ',' ORDER BY i.indexrelid) "
         "FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid), "
         "(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', g.oid, g.tgenabled), ',' ORDER BY g.oid) "
         "FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND (g.tgisinternal OR g.tgenabled IN ('A', 'R')))), 0)";
}

std::string has_triggers_sql() {
  return "EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgenabled IN ('A', 'R'))";
}

base::Result<std::vector<DestinationVersion>> destination_versions(pg::Connection& connection,
                                                                   std::span<const base::RelationId> tables) {
  std::string oids = "{";
  for (const base::RelationId table : tables) oids += fmt::format("{}{}", oids.size() > 1 ? "," : "", table.value);
  oids += "}";
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query(fmt::format("SELECT c.oid, {} FROM pg_catalog.pg_class c JOIN "
                                              "pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                                              "WHERE c.oid = ANY ($1::oid[])",
                                              destination_version_sql()),
                                  {oids}));
  std::vector<DestinationVersion> versions;
  for (size_t row = 0; row < rows.size(); ++row) {
    versions.push_back({.table = {static_cast<uint32_t>(rows.integer(row, 0))}, .version = rows.integer(row, 1)});
  }
  return versions;
}

bool is_schema_change(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 12> kStates{
      "0A000",  // cached plan must not change result type
      "22P03",  // a value's binary form is another type's
      "26000",  // the prepared statement is gone
      "3F000",  // undefined schema
      "42703",  // undefined column
      "42704",  // undefined object: a type
      "42804",  // datatype mismatch
      "42883",  // undefined function: no such operator between the types
      "428C9",  // a column is generated now
      "42P01",  // undefined table
      "42P10",  // no unique index for ON CONFLICT
      "TW003",  // the data layer found the table or its index otherwise than described
  };
  return std::ranges::find(kStates, sqlstate) != kStates.end();
}

}  // namespace thalweg::metadata
