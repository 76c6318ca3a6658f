#include "pg/value_forms.h"

#include <fmt/format.h>

namespace thalweg::pg {

namespace {

// A type and what it is made of, each (type, whether it stands in an array or composite) once. OIDs below 10000 are the
// same in every database of every version.
constexpr const char* kQuery =
    "WITH RECURSIVE part(type, is_member) AS ("
    "  SELECT a.atttypid, false FROM pg_catalog.pg_attribute a "
    "  WHERE a.attrelid IN ({}) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
    "UNION "
    "  SELECT inside.type, t.typtype IN ('b', 'c') FROM part JOIN pg_catalog.pg_type t ON t.oid = part.type, LATERAL ("
    "    SELECT t.typelem WHERE t.typtype = 'b' AND t.typlen = -1 AND t.typelem <> 0 "
    "      AND t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc "
    "    UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd' "
    "    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a "
    "      WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped "
    "    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.typtype = 'r' AND r.rngtypid = t.oid "
    "    UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE t.typtype = 'm' AND r.rngmultitypid = t.oid"
    "  ) inside(type)) "
    "SELECT coalesce(bool_or(t.typsend = 0 OR t.typreceive = 0 OR (t.oid < 10000 AND t.typtype = 'b' AND "
    "         (t.typname IN ('tsquery', 'int2vector', 'oidvector') OR t.typname LIKE 'reg%'))), false), "
    "       coalesce(bool_or(part.is_member AND t.oid >= 10000), false) "
    "FROM part JOIN pg_catalog.pg_type t ON t.oid = part.type";

}  // namespace

base::Result<ValueForms> value_forms(Connection& connection, const std::string& relations, std::string_view parameter) {
  THALWEG_ASSIGN(const Rows rows, connection.query(fmt::format(kQuery, relations), {parameter}));
  return ValueForms{.needs_text = rows.boolean(0, 0), .holds_type_oids = rows.boolean(0, 1)};
}

}  // namespace thalweg::pg
