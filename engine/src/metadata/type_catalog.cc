#include "metadata/type_catalog.h"

#include <utility>

#include <fmt/format.h>

namespace thalweg::metadata {

namespace {

using base::ErrorCode;

constexpr int kDepthMax = 64;  // nesting of types: PostgreSQL sets no limit, and no type contains itself

constexpr const char* kTypeQuery =
    "SELECT t.typtype, t.typarray, t.typelem, t.typbasetype, t.typrelid, t.typreceive <> 0, "
    "t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc AND t.typlen = -1, "
    "pg_catalog.format_type(t.oid, NULL), "
    "(SELECT rngsubtype FROM pg_catalog.pg_range WHERE rngtypid = t.oid), "
    "(SELECT rngtypid FROM pg_catalog.pg_range WHERE rngmultitypid = t.oid), "
    "pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname), "
    "(SELECT pg_catalog.quote_ident(fn.nspname) || '.' || pg_catalog.quote_ident(f.proname) FROM pg_catalog.pg_proc f "
    "JOIN pg_catalog.pg_namespace fn ON fn.oid = f.pronamespace JOIN pg_catalog.pg_type a ON a.oid = f.proargtypes[0] "
    "WHERE f.oid = t.typsend AND (a.oid = t.oid OR a.typtype = 'p')) "
    "FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = $1::oid";

base::TypeId type_id(const pg::Rows& rows, size_t column) { return {static_cast<uint32_t>(rows.integer(0, column))}; }

// A type lacks each form that a type inside it lacks.
void take_in(TypeNode& node, const TypeNode& inner) {
  node.has_binary_input = node.has_binary_input && inner.has_binary_input;
  if (inner.send.empty()) node.send.clear();
}

bool names_database_oid(const TypeNode& inner) { return inner.oid.value >= kFirstDatabaseOid || inner.embeds_oids; }

}  // namespace

base::Result<std::shared_ptr<const TypeNode>> TypeCatalog::find(pg::Connection& connection, base::TypeId oid) {
  return load(connection, oid, 0);
}

base::Result<std::shared_ptr<const TypeNode>> TypeCatalog::load(pg::Connection& connection, base::TypeId oid,
                                                                int depth) {
  if (const auto known = nodes_.find(oid.value); known != nodes_.end()) return known->second;
  THALWEG_ASSIGN(const pg::Rows rows, connection.query(kTypeQuery, {std::to_string(oid.value)}));
  if (rows.size() != 1) {
    return base::fail(ErrorCode::destination_table_differs,
                      depth == 0 ? "its type does not exist at the destination any more"
                                 : "a type within its type does not exist at the destination any more");
  }
  if (depth > kDepthMax) {
    return base::fail(
        ErrorCode::destination_table_differs,
        fmt::format("its type contains {} on level {}, and the engine reads types down to level {}: use one that nests "
                    "less deep",
                    rows.text(0, 7), depth, kDepthMax));
  }
  const char type_type = rows.text(0, 0).front();
  auto node = std::make_shared<TypeNode>();
  if (type_type == 'd') {
    THALWEG_ASSIGN(const auto inner, load(connection, type_id(rows, 3), depth + 1));
    *node = *inner;
    node->is_domain = true;
  } else {
    node->value_type = oid;
    node->array_type = type_id(rows, 1);
    node->has_binary_input = rows.boolean(0, 5);
    node->value_name = rows.text(0, 10);
    node->send = rows.text(0, 11);
    if (rows.boolean(0, 6)) {
      node->kind = TypeKind::array;
      THALWEG_ASSIGN(node->element, load(connection, type_id(rows, 2), depth + 1));
      node->embeds_oids = names_database_oid(*node->element);
      take_in(*node, *node->element);
    } else if (type_type == 'e') {
      node->kind = TypeKind::enumeration;
    } else if (type_type == 'c') {
      node->kind = TypeKind::composite;
      THALWEG_TRY(load_fields(connection, type_id(rows, 4), *node, depth));
    } else if (type_type == 'r' || type_type == 'm') {
      node->kind = type_type == 'r' ? TypeKind::range : TypeKind::multirange;
      THALWEG_ASSIGN(node->element, load(connection, type_id(rows, type_type == 'r' ? 8 : 9), depth + 1));
      node->embeds_oids = node->element->embeds_oids;
      take_in(*node, *node->element);
    }
  }
  node->oid = oid;
  node->name = rows.text(0, 7);
  nodes_.emplace(oid.value, node);
  return node;
}

base::Result<void> TypeCatalog::load_fields(pg::Connection& connection, base::TypeId relation, TypeNode& node,
                                            int depth) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection.query("SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = $1::oid "
                                  "AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                                  {std::to_string(relation.value)}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const base::TypeId field{static_cast<uint32_t>(rows.integer(row, 0))};
    THALWEG_ASSIGN(auto inner, load(connection, field, depth + 1));
    node.embeds_oids = node.embeds_oids || names_database_oid(*inner);
    take_in(node, *inner);
    node.fields.push_back(std::move(inner));
  }
  return {};
}

}  // namespace thalweg::metadata
