#include <fmt/format.h>

#include <algorithm>

#include "instantiation/catalogue.h"

// The half of Catalogue that reads types: what a column's type is made of, and how to make it elsewhere.

namespace thalweg::instantiation {
namespace {

constexpr uint32_t kFirstUserOid = 16384;  // FirstNormalObjectId in PostgreSQL's access/transam.h

std::string text(const pg::Rows& rows, size_t row, size_t column) { return std::string(rows.text(row, column)); }

}  // namespace

base::Result<const Catalogue::Type*> Catalogue::type(uint32_t oid) {
  if (auto known = types_.find(oid); known != types_.end()) return &known->second;
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT n.nspname, t.typname, CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 AND t.typlen = -1 THEN 'a' "
          "ELSE t.typtype END, "
          "e.extname, "
          "CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 AND t.typlen = -1 THEN ARRAY[t.typelem] "
          "     WHEN t.typtype = 'd' THEN ARRAY[t.typbasetype] "
          "     WHEN t.typtype = 'c' THEN ARRAY(SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = t.typrelid "
          "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) "
          "     WHEN t.typtype = 'r' THEN ARRAY(SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid) "
          "     WHEN t.typtype = 'm' THEN ARRAY(SELECT r.rngtypid FROM pg_range r WHERE r.rngmultitypid = t.oid) "
          "     ELSE ARRAY[]::oid[] END "
          "FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
          "LEFT JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e' "
          "LEFT JOIN pg_extension e ON e.oid = d.refobjid WHERE t.oid = $1",
          {std::to_string(oid)}));
  if (rows.size() == 0)
    return base::fail(base::ErrorCode::missing_type, fmt::format("The type with OID {} is gone", oid));
  Type type{.oid = oid,
            .name = {text(rows, 0, 0), text(rows, 0, 1)},
            .kind = rows.text(0, 2).front(),
            .user_defined = oid >= kFirstUserOid,
            .extension = text(rows, 0, 3),
            .parts = {}};
  std::string parts = text(rows, 0, 4);  // "{1,2}"
  for (size_t at = 1; at + 1 < parts.size();) {
    size_t end = parts.find_first_of(",}", at);
    type.parts.push_back(static_cast<uint32_t>(std::stoul(parts.substr(at, end - at))));
    at = end + 1;
  }
  return &types_.emplace(oid, std::move(type)).first->second;
}

base::Result<void> Catalogue::types_of(const TableShape& table, std::set<uint32_t>& seen, std::vector<TypeShape>& out) {
  for (const ColumnShape& column : table.columns) THALWEG_TRY(collect_type(column.type_id.value, seen, out));
  return {};
}

base::Result<void> Catalogue::collect_type(uint32_t oid, std::set<uint32_t>& seen, std::vector<TypeShape>& out) {
  if (!seen.insert(oid).second) return {};
  THALWEG_ASSIGN(const Type* type, this->type(oid));
  if (type->extension.empty()) {
    for (uint32_t part : type->parts) THALWEG_TRY(collect_type(part, seen, out));
  }
  // An array comes with its element, a multirange with its range.
  if (!type->user_defined || type->kind == 'a' || type->kind == 'm') return {};
  TypeShape shape{.id = {oid},
                  .name = type->name,
                  .kind = type->kind,
                  .extension = type->extension,
                  .labels = {},
                  .parts = {},
                  .rules = {},
                  .create_sql = {}};
  if (shape.extension.empty()) THALWEG_TRY(describe(*type, shape));
  out.push_back(std::move(shape));
  return {};
}

base::Result<std::optional<TypeShape>> Catalogue::find_type(const TableName& name) {
  THALWEG_ASSIGN(pg::Rows rows,
                 connection_.query("SELECT t.oid FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
                                   "WHERE n.nspname = $1 AND t.typname = $2",
                                   {name.schema, name.name}));
  if (rows.size() == 0) return std::nullopt;
  THALWEG_ASSIGN(const Type* type, this->type(static_cast<uint32_t>(rows.integer(0, 0))));
  TypeShape shape{.id = {type->oid},
                  .name = name,
                  .kind = type->kind,
                  .extension = type->extension,
                  .labels = {},
                  .parts = {},
                  .rules = {},
                  .create_sql = {}};
  THALWEG_TRY(describe(*type, shape));
  return shape;
}

base::Result<void> Catalogue::describe(const Type& type, TypeShape& out) {
  const std::string oid = std::to_string(type.oid);
  const std::string name = type.name.quoted();
  if (type.kind == 'e') {
    THALWEG_ASSIGN(
        pg::Rows rows,
        connection_.query("SELECT enumlabel FROM pg_enum WHERE enumtypid = $1 ORDER BY enumsortorder", {oid}));
    std::string labels;
    for (size_t i = 0; i < rows.size(); ++i) {
      out.labels.push_back(text(rows, i, 0));
      labels += (i ? ", " : "") + connection_.quote_literal(rows.text(i, 0));
    }
    out.create_sql.push_back(fmt::format("CREATE TYPE {} AS ENUM ({})", name, labels));
  } else if (type.kind == 'd') {
    THALWEG_ASSIGN(
        pg::Rows rows,
        connection_.query("SELECT format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault IS NOT NULL, "
                          "coalesce(pg_get_expr(t.typdefaultbin, 0), quote_literal(t.typdefault)), "
                          "CASE WHEN t.typcollation <> b.typcollation AND t.typcollation <> 0 THEN "
                          "quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END "
                          "FROM pg_type t JOIN pg_type b ON b.oid = t.typbasetype LEFT JOIN pg_collation co ON co.oid "
                          "= t.typcollation "
                          "LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE t.oid = $1",
                          {oid}));
    THALWEG_ASSIGN(pg::Rows checks,
                   connection_.query("SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint "
                                     "WHERE contypid = $1 AND contype = 'c' ORDER BY conname",
                                     {oid}));
    out.parts.emplace_back(rows.text(0, 0));
    std::string sql = fmt::format("CREATE DOMAIN {} AS {}", name, rows.text(0, 0));
    if (!rows.is_null(0, 4)) sql += fmt::format(" COLLATE {}", rows.text(0, 4));
    if (rows.boolean(0, 2)) sql += fmt::format(" DEFAULT {}", rows.text(0, 3));
    if (rows.boolean(0, 1)) {
      sql += " NOT NULL";
      out.rules.emplace_back("NOT NULL");
    }
    for (size_t i = 0; i < checks.size(); ++i) {
      std::string definition = text(checks, i, 1);
      // CREATE DOMAIN has no NOT VALID; the copied values passed, or will fail, at the source already.
      if (definition.ends_with(" NOT VALID")) continue;
      out.rules.push_back(definition);
      sql += fmt::format(" CONSTRAINT {} {}", checks.text(i, 0), definition);
    }
    out.create_sql.push_back(std::move(sql));
  } else if (type.kind == 'c') {
    THALWEG_ASSIGN(
        pg::Rows rows,
        connection_.query(
            "SELECT quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), "
            "CASE WHEN a.attcollation <> t.typcollation AND a.attcollation <> 0 THEN quote_ident(cn.nspname) || '.' || "
            "quote_ident(co.collname) END "
            "FROM pg_type c JOIN pg_attribute a ON a.attrelid = c.typrelid AND a.attnum > 0 AND NOT a.attisdropped "
            "JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation co ON co.oid = a.attcollation "
            "LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace "
            "WHERE c.oid = $1 ORDER BY a.attnum",
            {oid}));
    std::string attributes;
    for (size_t i = 0; i < rows.size(); ++i) {
      out.parts.push_back(fmt::format("{} {}", rows.text(i, 0), rows.text(i, 1)));
      attributes += fmt::format("{}{} {}{}", i ? ", " : "", rows.text(i, 0), rows.text(i, 1),
                                rows.is_null(i, 2) ? "" : fmt::format(" COLLATE {}", rows.text(i, 2)));
    }
    out.create_sql.push_back(fmt::format("CREATE TYPE {} AS ({})", name, attributes));
  } else if (type.kind == 'r') {
    THALWEG_ASSIGN(
        pg::Rows rows,
        connection_.query(
            "SELECT format_type(r.rngsubtype, NULL), quote_ident(mn.nspname) || '.' || quote_ident(m.typname), "
            "r.rngcanonical <> 0, CASE WHEN r.rngsubdiff <> 0 AND r.rngsubdiff::oid < 16384 THEN r.rngsubdiff::text "
            "END, "
            "CASE WHEN r.rngcollation <> s.typcollation AND r.rngcollation <> 0 THEN quote_ident(cn.nspname) || '.' || "
            "quote_ident(co.collname) END "
            "FROM pg_range r JOIN pg_type s ON s.oid = r.rngsubtype JOIN pg_type m ON m.oid = r.rngmultitypid "
            "JOIN pg_namespace mn ON mn.oid = m.typnamespace LEFT JOIN pg_collation co ON co.oid = r.rngcollation "
            "LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE r.rngtypid = $1",
            {oid}));
    if (rows.size() > 0) out.parts.emplace_back(rows.text(0, 0));
    if (rows.size() == 0 || rows.boolean(0, 2)) return {};  // a canonical function is code: somebody must bring it
    std::string sql = fmt::format("CREATE TYPE {} AS RANGE (SUBTYPE = {}, MULTIRANGE_TYPE_NAME = {}", name,
                                  rows.text(0, 0), rows.text(0, 1));
    if (!rows.is_null(0, 3)) sql += fmt::format(", SUBTYPE_DIFF = {}", rows.text(0, 3));
    if (!rows.is_null(0, 4)) sql += fmt::format(", COLLATION = {}", rows.text(0, 4));
    out.create_sql.push_back(sql + ")");
  }
  return {};
}

}  // namespace thalweg::instantiation
