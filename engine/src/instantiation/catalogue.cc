#include "instantiation/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "pg/replica_identity.h"
#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

char letter(const pg::Rows& rows, size_t row, size_t column) {
  std::string_view text = rows.text(row, column);
  return text.empty() ? '\0' : text.front();
}

std::string text(const pg::Rows& rows, size_t row, size_t column) { return std::string(rows.text(row, column)); }

uint32_t oid(const pg::Rows& rows, size_t row, size_t column) {
  return static_cast<uint32_t>(rows.integer(row, column));
}

double estimate_of(const std::vector<TableShape>& partitions) {
  double sum = 0;
  for (const TableShape& partition : partitions) {
    if (partition.kind != 'r') continue;
    if (partition.rows_estimated < 0) return -1;
    sum += partition.rows_estimated;
  }
  return sum;
}

// (schemas, names), for unnest() of both.
std::pair<std::string, std::string> name_arrays(const std::vector<TableName>& names) {
  std::vector<std::string> schemas;
  std::vector<std::string> relations;
  for (const TableName& name : names) {
    schemas.push_back(name.schema);
    relations.push_back(name.name);
  }
  return {pg::text_array(schemas), pg::text_array(relations)};
}

}  // namespace

// Tables by OID, for rows of one query about all of them. A table is there twice when it is chosen by itself and as a
// partition.
struct Catalogue::Targets {
  std::multimap<uint32_t, TableShape*> tables;

  std::string oids() const {
    std::vector<std::string> all;
    for (const auto& [oid, table] : tables) all.push_back(std::to_string(oid));
    return pg::text_array(all);
  }
  template <typename Visit>
  void each(uint32_t oid, Visit visit) const {
    auto [first, last] = tables.equal_range(oid);
    for (auto at = first; at != last; ++at) visit(*at->second);
  }
};

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

base::Result<std::set<TableName>> Catalogue::existing(const std::vector<TableName>& relations) {
  auto [schemas, names] = name_arrays(relations);
  THALWEG_ASSIGN(pg::Rows rows,
                 connection_.query("SELECT n.nspname, c.relname FROM unnest($1::text[], $2::text[]) w(schema, name) "
                                   "JOIN pg_namespace n ON n.nspname = w.schema "
                                   "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name",
                                   {schemas, names}));
  std::set<TableName> found;
  for (size_t i = 0; i < rows.size(); ++i) found.insert({text(rows, i, 0), text(rows, i, 1)});
  return found;
}

base::Result<std::string> Catalogue::in_words(const TableName& relation) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection_.query("SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) || "
                                   "coalesce(' of ' || i.indrelid::regclass::text, '') FROM pg_class c "
                                   "LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.oid = to_regclass($1)",
                                   {relation.quoted()}));
  return rows.size() == 0 ? relation.quoted() : text(rows, 0, 0);
}

base::Result<std::set<IndexOf>> Catalogue::indexes(const std::vector<TableName>& relations) {
  auto [schemas, names] = name_arrays(relations);
  THALWEG_ASSIGN(pg::Rows rows,
                 connection_.query("SELECT n.nspname, c.relname, t.relname FROM unnest($1::text[], $2::text[]) "
                                   "w(schema, name) JOIN pg_namespace n ON n.nspname = w.schema "
                                   "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name "
                                   "JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid",
                                   {schemas, names}));
  std::set<IndexOf> found;
  for (size_t i = 0; i < rows.size(); ++i) found.insert({{text(rows, i, 0), text(rows, i, 2)}, text(rows, i, 1)});
  return found;
}

base::Result<std::set<std::string>> Catalogue::schemas() {
  THALWEG_ASSIGN(pg::Rows rows, connection_.query("SELECT nspname FROM pg_namespace", {}));
  std::set<std::string> found;
  for (size_t i = 0; i < rows.size(); ++i) found.insert(text(rows, i, 0));
  return found;
}

base::Result<std::optional<TableShape>> Catalogue::table(const TableName& name) {
  THALWEG_ASSIGN(Tables found, tables({name}));
  if (found.empty()) return std::nullopt;
  return std::move(found.begin()->second);
}

base::Result<Catalogue::Tables> Catalogue::tables(const std::vector<TableName>& names) {
  auto [schemas, relations] = name_arrays(names);
  THALWEG_ASSIGN(std::vector<TableShape> read,
                 read_relations("JOIN unnest($1::text[], $2::text[]) w(schema, name) "
                                "ON n.nspname = w.schema AND c.relname = w.name ORDER BY 1, 2",
                                {schemas, relations}));
  Tables found;
  Targets roots;
  for (TableShape& table : read) {
    TableShape& kept = found[table.name] = std::move(table);
    roots.tables.emplace(kept.oid, &kept);
  }
  if (found.empty()) return found;
  // A partition that is a stream's table by itself is made as a table of its own: what it inherits must come too.
  THALWEG_TRY(read_columns(roots));
  THALWEG_TRY(read_constraints(roots, true));
  THALWEG_TRY(read_indexes(roots, true));
  THALWEG_TRY(read_sequences(roots));
  THALWEG_TRY(read_partitions(roots));
  return found;
}

base::Result<std::vector<TableShape>> Catalogue::read_relations(const std::string& chosen,
                                                                std::initializer_list<std::string_view> parameters) {
  // reltuples 0 beside a non-empty file means as little as -1: the table was analysed before it was filled.
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT n.nspname, c.relname, c.oid, c.relkind, c.relpersistence, c.relreplident, "
          "CASE WHEN c.reltuples <= 0 AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0 THEN -1 "
          "     WHEN c.relkind = 'r' AND c.reltuples < 0 THEN 0 ELSE c.reltuples END, "
          "pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), pn.nspname, p.relname, " +
              pg::has_replica_identity("c") +
              ", "
              "(SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid "
              " WHERE i.indrelid = c.oid AND i.indisreplident AND c.relreplident = 'i') "
              "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
              "LEFT JOIN pg_inherits h ON c.relispartition AND h.inhrelid = c.oid "
              "LEFT JOIN pg_class p ON p.oid = h.inhparent LEFT JOIN pg_namespace pn ON pn.oid = p.relnamespace " +
              chosen,
          parameters));
  std::vector<TableShape> tables(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    TableShape& table = tables[i];
    table.name = {text(rows, i, 0), text(rows, i, 1)};
    table.oid = oid(rows, i, 2);
    table.kind = letter(rows, i, 3);
    table.persistence = letter(rows, i, 4);
    table.replica_identity = letter(rows, i, 5);
    table.rows_estimated = std::stod(text(rows, i, 6));
    table.partition_key = text(rows, i, 7);
    table.partition_bound = text(rows, i, 8);
    if (!rows.is_null(i, 9)) table.parent = TableName{text(rows, i, 9), text(rows, i, 10)};
    table.identity_usable = rows.boolean(i, 11);
    if (!rows.is_null(i, 12)) table.identity_index = text(rows, i, 12);
  }
  return tables;
}

base::Result<void> Catalogue::read_columns(const Targets& targets) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, NULL), a.atttypid, "
          "CASE WHEN a.attcollation <> t.typcollation AND a.attcollation <> 0 "
          "     THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END, "
          // One that is not validated (PostgreSQL 18) may have rows without a value.
          "a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid "
          "     AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum] AND NOT k.convalidated), pg_get_expr(d.adbin, "
          "d.adrelid), a.attidentity, a.attgenerated, "
          "format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle, "
          "a.attrelid, a.atttypmod "
          "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
          "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
          "LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace "
          "LEFT JOIN pg_depend dep ON a.attidentity <> '' AND dep.classid = 'pg_class'::regclass AND dep.refclassid = "
          "'pg_class'::regclass "
          "     AND dep.refobjid = a.attrelid AND dep.refobjsubid = a.attnum AND dep.deptype = 'i' "
          "LEFT JOIN pg_sequence s ON s.seqrelid = dep.objid "
          "WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum",
          {targets.oids()}));
  for (size_t i = 0; i < rows.size(); ++i) {
    ColumnShape column;
    column.name = text(rows, i, 0);
    column.type = text(rows, i, 1);
    column.plain_type = text(rows, i, 2);
    column.type_id = {static_cast<uint32_t>(rows.integer(i, 3))};
    column.type_modifier = static_cast<int32_t>(rows.integer(i, 17));
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
    targets.each(oid(rows, i, 16), [&](TableShape& table) { table.columns.push_back(column); });
  }
  return {};
}

base::Result<void> Catalogue::read_constraints(const Targets& targets, bool inherited_too) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query("SELECT k.conname, k.contype, pg_get_constraintdef(k.oid), rn.nspname, r.relname, a.attname, "
                        "k.conrelid "
                        "FROM pg_constraint k LEFT JOIN pg_class r ON r.oid = k.confrelid "
                        "LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace "
                        "LEFT JOIN LATERAL unnest(CASE WHEN k.contype IN ('p', 'u') THEN k.conkey END) "
                        "     WITH ORDINALITY AS u(attnum, place) ON true "
                        "LEFT JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum "
                        "WHERE k.conrelid = ANY($1::oid[]) AND k.contype IN ('p', 'u', 'x', 'c', 'f') "
                        "AND ($2::bool OR (k.conparentid = 0 AND k.conislocal)) "
                        // PostgreSQL's own, one for each partition of the table that a foreign key references.
                        "AND NOT EXISTS (SELECT FROM pg_constraint whole WHERE whole.oid = k.conparentid "
                        "     AND whole.confrelid <> k.confrelid) "
                        "ORDER BY k.conrelid, k.contype = 'f', k.contype <> 'p', k.conname, u.place",
                        {targets.oids(), inherited_too ? "true" : "false"}));
  for (size_t i = 0; i < rows.size(); ++i) {
    ConstraintShape constraint{.name = text(rows, i, 0),
                               .kind = letter(rows, i, 1),
                               .definition = text(rows, i, 2),
                               .columns = {},
                               .references = {}};
    if (!rows.is_null(i, 4)) constraint.references = TableName{text(rows, i, 3), text(rows, i, 4)};
    targets.each(oid(rows, i, 6), [&](TableShape& table) {
      if (table.constraints.empty() || table.constraints.back().name != constraint.name)
        table.constraints.push_back(constraint);
      if (!rows.is_null(i, 5)) table.constraints.back().columns.push_back(text(rows, i, 5));
    });
  }
  return {};
}

base::Result<void> Catalogue::read_indexes(const Targets& targets, bool inherited_too) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT c.relname, pg_get_indexdef(i.indexrelid), i.indisunique, quote_ident(c.relname), "
          "i.indrelid, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
          "LEFT JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) ON i.indisunique AND i.indimmediate "
          "AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts "
          "LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
          "WHERE i.indrelid = ANY($1::oid[]) AND i.indisvalid "
          "AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', "
          "'x')) "
          "AND ($2::bool OR NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)) "
          "ORDER BY i.indrelid, c.relname, k.place",
          {targets.oids(), inherited_too ? "true" : "false"}));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string definition = text(rows, i, 1);
    // For a partitioned table PostgreSQL prints ON ONLY, which would leave the index without its partitions' ones.
    std::string head = fmt::format("CREATE {}INDEX {} ON ", rows.boolean(i, 2) ? "UNIQUE " : "", rows.text(i, 3));
    if (definition.starts_with(head + "ONLY ")) definition.erase(head.size(), 5);
    targets.each(oid(rows, i, 4), [&](TableShape& table) {
      if (table.indexes.empty() || table.indexes.back().name != text(rows, i, 0))
        table.indexes.push_back({.name = text(rows, i, 0), .definition = definition});
      if (!rows.is_null(i, 5)) table.indexes.back().key_columns.push_back(text(rows, i, 5));
    });
  }
  return {};
}

base::Result<void> Catalogue::read_sequences(const Targets& targets) {
  THALWEG_ASSIGN(
      pg::Rows rows,
      connection_.query(
          "SELECT DISTINCT n.nspname, c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, "
          "s.seqmax, "
          "s.seqcache, s.seqcycle, oa.attname, d.adrelid "
          "FROM pg_attrdef d JOIN pg_depend dep ON dep.classid = 'pg_attrdef'::regclass AND dep.objid = d.oid AND "
          "dep.refclassid = 'pg_class'::regclass "
          "JOIN pg_class c ON c.oid = dep.refobjid AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace "
          "JOIN pg_sequence s ON s.seqrelid = c.oid "
          "LEFT JOIN pg_depend o ON o.classid = 'pg_class'::regclass AND o.objid = c.oid AND o.deptype = 'a' AND "
          "o.refobjid = d.adrelid "
          "LEFT JOIN pg_attribute oa ON oa.attrelid = o.refobjid AND oa.attnum = o.refobjsubid "
          "WHERE d.adrelid = ANY($1::oid[]) ORDER BY d.adrelid, 1, 2",
          {targets.oids()}));
  for (size_t i = 0; i < rows.size(); ++i) {
    const SequenceShape sequence{.name = {text(rows, i, 0), text(rows, i, 1)},
                                 .type = text(rows, i, 2),
                                 .start = text(rows, i, 3),
                                 .increment = text(rows, i, 4),
                                 .minimum = text(rows, i, 5),
                                 .maximum = text(rows, i, 6),
                                 .cache = text(rows, i, 7),
                                 .cycle = rows.boolean(i, 8),
                                 .owner_column = text(rows, i, 9)};
    targets.each(oid(rows, i, 10), [&](TableShape& table) { table.sequences.push_back(sequence); });
  }
  return {};
}

base::Result<void> Catalogue::read_partitions(const Targets& roots) {
  THALWEG_ASSIGN(pg::Rows rows, connection_.query("SELECT root, tree.relid::oid FROM unnest($1::oid[]) root "
                                                  "CROSS JOIN pg_partition_tree(root) tree WHERE tree.level > 0 "
                                                  "ORDER BY root, tree.level, tree.relid",
                                                  {roots.oids()}));
  std::vector<std::string> oids;
  for (size_t i = 0; i < rows.size(); ++i) oids.push_back(text(rows, i, 1));
  if (oids.empty()) return {};
  THALWEG_ASSIGN(std::vector<TableShape> read, read_relations("WHERE c.oid = ANY($1::oid[])", {pg::text_array(oids)}));
  Targets known;
  for (TableShape& partition : read) known.tables.emplace(partition.oid, &partition);
  THALWEG_TRY(read_columns(known));
  THALWEG_TRY(read_constraints(known, false));
  THALWEG_TRY(read_indexes(known, false));
  for (size_t i = 0; i < rows.size(); ++i) {
    // One that was dropped since is missing here: the next look sees it.
    known.each(oid(rows, i, 1), [&](const TableShape& partition) {
      roots.each(oid(rows, i, 0), [&](TableShape& root) { root.partitions.push_back(partition); });
    });
  }
  for (const auto& [oid, root] : roots.tables) {
    if (root->kind == 'p') root->rows_estimated = estimate_of(root->partitions);
  }
  return {};
}

}  // namespace thalweg::instantiation
