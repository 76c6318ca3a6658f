#include "pg/bookkeeping_trust.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "pg/text_array.h"

namespace thalweg::pg {
namespace {

// Before PostgreSQL 15 every role may grant itself to any other: a membership counts that an administrator has granted.
// Predefined roles, below 16384, have members who do not know of one another. Nobody below a superuser may lead one.
constexpr const char* kQuestion =
#include "pg/bookkeeping_trust.inc"
    ;

}  // namespace

base::Result<bool> trusted_bookkeeping(Connection& connection, std::initializer_list<std::string_view> tables) {
  const std::vector<std::string> names(tables.begin(), tables.end());
  THALWEG_ASSIGN(const Rows rows, connection.query(kQuestion, {text_array(names)}));
  if (rows.text(0, 2).empty()) return rows.boolean(0, 0);
  return base::fail(
      base::ErrorCode::bookkeeping_not_trusted,
      fmt::format("The stream's role {} may not trust the schema thalweg: {}.", rows.text(0, 1), rows.text(0, 2)),
      base::ErrorSide::destination);
}

base::Result<void> lock_bookkeeping(Connection& connection) {
  THALWEG_TRY(connection.query("SELECT pg_catalog.pg_advisory_xact_lock(7520113906284133)"));
  return {};
}

base::Result<void> create_bookkeeping_schema(Connection& connection) {
  THALWEG_ASSIGN(const Rows found, connection.query("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'thalweg'"));
  if (found.size() == 0) THALWEG_TRY(connection.script("CREATE SCHEMA thalweg"));
  return {};
}

}  // namespace thalweg::pg
