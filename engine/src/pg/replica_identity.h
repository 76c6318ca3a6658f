#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace thalweg::pg {

// SQL that is true where the rows of a relation can be told apart by its replica identity. `relation`: an alias of
// pg_class. An index with generated columns does not count: those are not replicated.
inline std::string has_replica_identity(std::string_view relation) {
  return fmt::format(
      "CASE {0}.relreplident WHEN 'f' THEN true WHEN 'n' THEN false ELSE EXISTS (SELECT FROM pg_catalog.pg_index i "
      "WHERE i.indrelid = {0}.oid AND i.indisvalid AND i.indimmediate AND NOT EXISTS (SELECT FROM "
      "pg_catalog.pg_attribute g WHERE g.attrelid = {0}.oid AND g.attnum = ANY (i.indkey) AND g.attgenerated <> '') "
      "AND CASE {0}.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END) END",
      relation);
}

}  // namespace thalweg::pg
