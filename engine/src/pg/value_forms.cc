#include "pg/value_forms.h"

#include <fmt/format.h>

namespace thalweg::pg {

namespace {

// By relation: a type and what it is made of, each (type, whether it stands in an array or composite) once. OIDs below
// 10000 are the same in every database of every version.
constexpr const char* kQuery =
    "WITH RECURSIVE part(relation, type, is_member) AS ("
    "  SELECT a.attrelid, a.atttypid, false FROM pg_catalog.pg_attribute a "
    "  WHERE a.attrelid IN ({}) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
    "UNION "
    "  SELECT part.relation, inside.type, t.typtype IN ('b', 'c') FROM part JOIN pg_catalog.pg_type t ON t.oid = "
    "part.type, LATERAL ("
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
    "       coalesce(bool_or(part.is_member AND t.oid >= 10000), false), part.relation "
    "FROM part JOIN pg_catalog.pg_type t ON t.oid = part.type GROUP BY part.relation";

}  // namespace

base::Result<std::map<uint32_t, ValueForms>> value_forms_by_relation(Connection& connection,
                                                                     const std::string& relations,
                                                                     std::string_view parameter) {
  THALWEG_ASSIGN(const Rows rows, connection.query(fmt::format(kQuery, relations), {parameter}));
  std::map<uint32_t, ValueForms> forms;
  for (size_t i = 0; i < rows.size(); ++i) {
    forms[static_cast<uint32_t>(rows.integer(i, 2))] = {.needs_text = rows.boolean(i, 0),
                                                        .holds_type_oids = rows.boolean(i, 1)};
  }
  return forms;
}

base::Result<ValueForms> value_forms(Connection& connection, const std::string& relations, std::string_view parameter) {
  THALWEG_ASSIGN(const auto forms, value_forms_by_relation(connection, relations, parameter));
  ValueForms all;
  for (const auto& [relation, relation_forms] : forms) {
    all.needs_text = all.needs_text || relation_forms.needs_text;
    all.holds_type_oids = all.holds_type_oids || relation_forms.holds_type_oids;
  }
  return all;
}

}  // namespace thalweg::pg
