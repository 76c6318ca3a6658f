#include "instantiation/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace thalweg::instantiation {
namespace {

char letter(const pg::Rows& rows, size_t row, size_t column) {
  std::string_view text = rows.text(row, column);
  return text.empty() ? '\0' : text.front();
}

std::string text(const pg::Rows& rows, size_t row, size_t column) { return std::string(rows.text(row, column)); }

}  // namespace

const ConstraintShape* TableShape::primary_key() const {
  auto found = std::ranges::find(constraints, 'p', &ConstraintShape::kind);
  return found == constraints.end() ? nullptr : &*found;
}

const ColumnShape* TableShape::column(const std::string& column_name) const {
  auto found = std::ranges::find(columns, column_name, &ColumnShape::name);
  return found == columns.end() ? nullptr : &*found;
}

base::Result<void> Catalogue::open() {
  THALWEG_TRY(connection_.script(
      "SET search_path = ''; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0"));
  return {};
}

base::Result<bool> Catalogue::exists(const TableName& relation) {
  THALWEG_ASSIGN(pg::Rows rows,
                 connection_.query("SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                                   "WHERE n.nspname = $1 AND c.relname = $2",
                                   {relation.schema, relation.name}));
  return rows.size() > 0;
}

base::Result<std::optional<TableShape>> Catalogue::table(const TableName& name) {
  THALWEG_ASSIGN(pg::Rows rows,
                 connection_.query("SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                                   "WHERE n.nspname = $1 AND c.relname = $2",
                                   {name.schema, name.name}));
  if (rows.size() == 0) return std::nullopt;
  THALWEG_ASSIGN(std::optional<TableShape> table, read_relation("c.oid = $1", rows.text(0, 0)));
  if (!table) return std::nullopt;
  THALWEG_TRY(read_columns(*table));
  // A partition that is a stream's table by itself is made as a table of its own: what it inherits must come too.
  THALWEG_TRY(read_constraints(*table, true));
  THALWEG_TRY(read_indexes(*table, true));
  THALWEG_TRY(read_sequences(*table));
  if (table->kind == 'p') THALWEG_TRY(read_partitions(*table));
  return table;
}

base::Result<std::optional<TableShape>> Catalogue::read_relation(const std::string& where, std::string_view parameter) {
  // reltuples 0 beside a non-empty file means as little as -1: the table was analysed before it was filled.
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT n.nspname, c.relname, c.oid, c.relkind, c.relpersistence, c.relreplident, "
          "CASE WHEN c.reltuples <= 0 AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0 THEN -1 "
          "     WHEN c.relkind = 'r' AND c.reltuples < 0 THEN 0 ELSE c.reltuples END, "
          "pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), pn.nspname, p.relname, "
          "CASE c.relreplident WHEN 'f' THEN true WHEN 'n' THEN false ELSE EXISTS (SELECT FROM pg_index i WHERE "
          "i.indrelid = c.oid "
          "     AND i.indisvalid AND i.indimmediate AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE "
          "i.indisreplident END) END "
          "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
          "LEFT JOIN pg_inherits h ON c.relispartition AND h.inhrelid = c.oid "
          "LEFT JOIN pg_class p ON p.oid = h.inhparent LEFT JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE " +
              where,
          {parameter}));
  if (rows.size() == 0) return std::nullopt;
  TableShape table;
  table.name = {text(rows, 0, 0), text(rows, 0, 1)};
  table.oid = static_cast<uint32_t>(rows.integer(0, 2));
  table.kind = letter(rows, 0, 3);
  table.persistence = letter(rows, 0, 4);
  table.replica_identity = letter(rows, 0, 5);
  table.rows_estimated = std::stod(text(rows, 0, 6));
  table.partition_key = text(rows, 0, 7);
  table.partition_bound = text(rows, 0, 8);
  if (!rows.is_null(0, 9)) table.parent = TableName{text(rows, 0, 9), text(rows, 0, 10)};
  table.identity_usable = rows.boolean(0, 11);
  return table;
}

base::Result<void> Catalogue::read_columns(TableShape& table) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, NULL), a.atttypid, "
          "CASE WHEN a.attcollation <> t.typcollation AND a.attcollation <> 0 "
          "     THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END, "
          "a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, "
          "format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle "
          "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
          "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
          "LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace "
          "LEFT JOIN pg_depend dep ON a.attidentity <> '' AND dep.classid = 'pg_class'::regclass AND dep.refclassid = "
          "'pg_class'::regclass "
          "     AND dep.refobjid = a.attrelid AND dep.refobjsubid = a.attnum AND dep.deptype = 'i' "
          "LEFT JOIN pg_sequence s ON s.seqrelid = dep.objid "
          "WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
          {std::to_string(table.oid)}));
  for (size_t i = 0; i < rows.size(); ++i) {
    ColumnShape column;
    column.name = text(rows, i, 0);
    column.type = text(rows, i, 1);
    column.plain_type = text(rows, i, 2);
    column.type_id = {static_cast<uint32_t>(rows.integer(i, 3))};
    column.collation = text(rows, i, 4);
    column.not_null = rows.boolean(i, 5);
    column.default_expression = text(rows, i, 6);
    column.identity = letter(rows, i, 7);
    column.generated = letter(rows, i, 8);
    if (!rows.is_null(i, 9)) {
      column.identity_sequence = SequenceShape{.name = {},
                                               .type = text(rows, i, 9),
                                               .start = text(rows, i, 10),
                                               .increment = text(rows, i, 11),
                                               .minimum = text(rows, i, 12),
                                               .maximum = text(rows, i, 13),
                                               .cache = text(rows, i, 14),
                                               .cycle = rows.boolean(i, 15),
                                               .owner_column = column.name};
    }
    table.columns.push_back(std::move(column));
  }
  return {};
}

base::Result<void> Catalogue::read_constraints(TableShape& table, bool inherited_too) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query("SELECT k.conname, k.contype, pg_get_constraintdef(k.oid), rn.nspname, r.relname, a.attname "
                        "FROM pg_constraint k LEFT JOIN pg_class r ON r.oid = k.confrelid "
                        "LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace "
                        "LEFT JOIN LATERAL unnest(CASE WHEN k.contype IN ('p', 'u') THEN k.conkey END) "
                        "     WITH ORDINALITY AS u(attnum, place) ON true "
                        "LEFT JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum "
                        "WHERE k.conrelid = $1 AND k.contype IN ('p', 'u', 'x', 'c', 'f') "
                        "AND ($2::bool OR (k.conparentid = 0 AND k.conislocal)) "
                        "ORDER BY k.contype = 'f', k.contype <> 'p', k.conname, u.place",
                        {std::to_string(table.oid), inherited_too ? "true" : "false"}));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string name = text(rows, i, 0);
    if (table.constraints.empty() || table.constraints.back().name != name) {
      ConstraintShape constraint{
          .name = name, .kind = letter(rows, i, 1), .definition = text(rows, i, 2), .columns = {}, .references = {}};
      if (!rows.is_null(i, 4)) constraint.references = TableName{text(rows, i, 3), text(rows, i, 4)};
      table.constraints.push_back(std::move(constraint));
    }
    if (!rows.is_null(i, 5)) table.constraints.back().columns.push_back(text(rows, i, 5));
  }
  return {};
}

base::Result<void> Catalogue::read_indexes(TableShape& table, bool inherited_too) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT c.relname, pg_get_indexdef(i.indexrelid), i.indisunique, quote_ident(c.relname) "
          "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = $1 AND i.indisvalid "
          "AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', "
          "'x')) "
          "AND ($2::bool OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)) ORDER BY c.relname",
          {std::to_string(table.oid), inherited_too ? "true" : "false"}));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string definition = text(rows, i, 1);
    // For a partitioned table PostgreSQL prints ON ONLY, which would leave the index without its partitions' ones.
    std::string head = fmt::format("CREATE {}INDEX {} ON ", rows.boolean(i, 2) ? "UNIQUE " : "", rows.text(i, 3));
    if (definition.starts_with(head + "ONLY ")) definition.erase(head.size(), 5);
    table.indexes.push_back({text(rows, i, 0), std::move(definition)});
  }
  return {};
}

base::Result<void> Catalogue::read_sequences(TableShape& table) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT DISTINCT n.nspname, c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, "
          "s.seqmax, "
          "s.seqcache, s.seqcycle, oa.attname "
          "FROM pg_attrdef d JOIN pg_depend dep ON dep.classid = 'pg_attrdef'::regclass AND dep.objid = d.oid AND "
          "dep.refclassid = 'pg_class'::regclass "
          "JOIN pg_class c ON c.oid = dep.refobjid AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace "
          "JOIN pg_sequence s ON s.seqrelid = c.oid "
          "LEFT JOIN pg_depend o ON o.classid = 'pg_class'::regclass AND o.objid = c.oid AND o.deptype = 'a' AND "
          "o.refobjid = d.adrelid "
          "LEFT JOIN pg_attribute oa ON oa.attrelid = o.refobjid AND oa.attnum = o.refobjsubid "
          "WHERE d.adrelid = $1",
          {std::to_string(table.oid)}));
  for (size_t i = 0; i < rows.size(); ++i) {
    table.sequences.push_back({.name = {text(rows, i, 0), text(rows, i, 1)},
                               .type = text(rows, i, 2),
                               .start = text(rows, i, 3),
                               .increment = text(rows, i, 4),
                               .minimum = text(rows, i, 5),
                               .maximum = text(rows, i, 6),
                               .cache = text(rows, i, 7),
                               .cycle = rows.boolean(i, 8),
                               .owner_column = text(rows, i, 9)});
  }
  return {};
}

base::Result<void> Catalogue::read_partitions(TableShape& table) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT relid::oid FROM pg_partition_tree($1::oid::regclass) WHERE level > 0 ORDER BY level, relid",
          {std::to_string(table.oid)}));
  double sum = 0;
  bool unknown = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    THALWEG_ASSIGN(std::optional<TableShape> partition, read_relation("c.oid = $1", rows.text(i, 0)));
    if (!partition) continue;  // dropped since: the next look sees it
    THALWEG_TRY(read_columns(*partition));
    THALWEG_TRY(read_constraints(*partition, false));
    THALWEG_TRY(read_indexes(*partition, false));
    if (partition->kind == 'r') {
      unknown = unknown || partition->rows_estimated < 0;
      sum += std::max(partition->rows_estimated, 0.0);
    }
    table.partitions.push_back(std::move(*partition));
  }
  table.rows_estimated = unknown ? -1 : sum;
  return {};
}

}  // namespace thalweg::instantiation
