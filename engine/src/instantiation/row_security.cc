#include "instantiation/row_security.h"

#include <fmt/format.h>

#include "pg/text_array.h"

namespace thalweg::instantiation {

base::Result<void> check_row_security(pg::Connection& connection, const std::vector<TableName>& tables,
                                      base::ErrorSide side) {
  std::vector<std::string> names;
  for (const TableName& table : tables) names.push_back(table.quoted());
  THALWEG_ASSIGN(
      const pg::Rows bound,
      connection.query("SELECT t, pg_catalog.quote_ident(current_user), pg_catalog.pg_has_role(c.relowner, 'USAGE') "
                       "FROM unnest($1::text[]) WITH ORDINALITY AS n(t, place) "
                       "JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t) "
                       "WHERE pg_catalog.row_security_active(c.oid) ORDER BY place LIMIT 1",
                       {pg::text_array(names)}));
  if (bound.size() == 0) return {};
  const std::string_view table = bound.text(0, 0);
  const std::string_view role = bound.text(0, 1);
  // It applies to an owner only where it is forced.
  const std::string unforced =
      bound.boolean(0, 2) ? fmt::format("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY, or ", table) : "";
  base::Error error =
      base::fail(
          base::ErrorCode::insufficient_privilege,
          fmt::format("The row-level security of {0} applies to the user {1} at the {2}, and could hide rows from "
                      "the stream. Run {3}ALTER ROLE {1} BYPASSRLS as a superuser there, then try again.",
                      table, role, base::name_of(side), unforced),
          side)
          .error();
  error.table = std::string(table);
  return std::unexpected(std::move(error));
}

}  // namespace thalweg::instantiation
