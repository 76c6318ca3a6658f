#include "instantiation/stand_in.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "instantiation/destination_names.h"
#include "pg/text_array.h"

namespace thalweg::instantiation {
namespace {

constexpr std::string_view kPrefix = "thalweg rehearsal of ";

// By table: whether it may be referenced, the columns of its keys, and its keys. A
// foreign key can reference a unique index that is not partial, is over columns, and is checked at once.
constexpr const char* kReferenced = R"sql(
SELECT wanted.place,
       pg_catalog.has_table_privilege(c.oid, 'REFERENCES') OR pg_catalog.has_any_column_privilege(c.oid, 'REFERENCES'),
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.format('%I %s%s', a.attname,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                CASE WHEN a.attcollation <> t.typcollation
                     THEN pg_catalog.format(' COLLATE %I.%I', ln.nspname, l.collname) END), ', ' ORDER BY a.attnum)
          FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
          LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
          LEFT JOIN pg_catalog.pg_namespace ln ON ln.oid = l.collnamespace
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ''),
       coalesce((SELECT pg_catalog.string_agg(', UNIQUE (' || (
             SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY k.place)
               FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
              WHERE k.place <= i.indnkeyatts) || ')', '')
          FROM pg_catalog.pg_index i
         WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
           AND i.indexprs IS NULL), '')
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY wanted(schema, name, place)
  JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.schema
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name AND c.relkind IN ('r', 'p')
)sql";

struct StandIn {
  TableName name;
  bool may_be_referenced = false;
  std::string sql;
};

// Stand-ins by the tables that they stand for.
using StandIns = std::map<TableName, StandIn>;

base::Result<StandIns> read_stand_ins(pg::Connection& destination, const std::vector<Statement>& plan) {
  std::set<TableName> made;
  for (const Statement& statement : plan) {
    if (statement.part == Part::table || statement.part == Part::partition) made.insert(statement.table);
    if (statement.part == Part::partition) made.insert({statement.table.schema, statement.name});
  }
  std::map<TableName, std::string> wanted;  // and the schema of one that points at it: there we may make tables
  for (const Statement& statement : plan) {
    if (statement.references && !made.contains(*statement.references)) {
      wanted.emplace(*statement.references, statement.table.schema);
    }
  }
  std::vector<TableName> tables;
  std::vector<std::string> schemas;
  std::vector<std::string> names;
  for (const auto& [table, schema] : wanted) {
    tables.push_back(table);
    schemas.push_back(table.schema);
    names.push_back(table.name);
  }
  StandIns found;
  if (tables.empty()) return found;
  THALWEG_ASSIGN(const pg::Rows rows, destination.query(kReferenced, {pg::text_array(schemas), pg::text_array(names)}));
  for (size_t row = 0; row < rows.size(); ++row) {
    const size_t place = static_cast<size_t>(rows.integer(row, 0)) - 1;
    const TableName& table = tables[place];
    const TableName name{wanted[table], fmt::format("{}{}", kPrefix, place + 1)};
    found[table] = {.name = name,
                    .may_be_referenced = rows.boolean(row, 1),
                    .sql = fmt::format("CREATE TABLE {} ({}{})", name.quoted(), rows.text(row, 2), rows.text(row, 3))};
  }
  return found;
}

}  // namespace

base::Result<void> use_stand_ins(pg::Connection& destination, std::vector<Statement>& plan,
                                 std::vector<Statement>& denied) {
  THALWEG_ASSIGN(const StandIns found, read_stand_ins(destination, plan));
  if (found.empty()) return {};
  std::vector<Statement> planned;
  for (const auto& [table, stand_in] : found) {
    planned.push_back({.part = Part::table,
                       .table = stand_in.name,
                       .name = stand_in.name.name,
                       .sql = stand_in.sql,
                       .references = {}});
  }
  const auto first = std::ranges::find(plan, Part::foreign_key, &Statement::part);
  planned.insert(planned.begin(), std::make_move_iterator(plan.begin()), std::make_move_iterator(first));
  for (auto at = first; at != plan.end(); ++at) {
    const auto stand_in = at->references ? found.find(*at->references) : found.end();
    if (stand_in == found.end()) {
      planned.push_back(std::move(*at));
    } else if (!stand_in->second.may_be_referenced) {
      denied.push_back(std::move(*at));
    } else {
      const StandIn& substitute = stand_in->second;
      at->stands_for = std::pair(*at->references, at->sql);
      at->sql = with_reference(at->sql, *at->references, substitute.name);
      at->references = substitute.name;
      planned.push_back(std::move(*at));
    }
  }
  plan = std::move(planned);
  return {};
}

bool is_stand_in(const Statement& statement) {
  return statement.part == Part::table && statement.table.name.starts_with(kPrefix);
}

Statement without_stand_in(Statement statement) {
  if (statement.stands_for) {
    statement.references = statement.stands_for->first;
    statement.sql = statement.stands_for->second;
  }
  return statement;
}

}  // namespace thalweg::instantiation
