#include "instantiation/destination_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "instantiation/comparison.h"
#include "instantiation/ranges.h"

namespace thalweg::instantiation {
namespace {

// The server parses a whole script before it runs any of it.
constexpr size_t kScriptStatements = 500;

std::unexpected<base::Error> differs(const TableName& table, std::string message) {
  base::Error error = base::fail(base::ErrorCode::destination_table_differs, std::move(message)).error();
  error.table = table.quoted();
  return std::unexpected(std::move(error));
}

}  // namespace

using base::ErrorClass;
using base::ErrorCode;

bool is_refusal(const base::Error& error) {
  return base::class_of(error.code) == ErrorClass::permanent && error.code == ErrorCode::database_error;
}

base::Result<std::vector<TypeShape>> DestinationSchema::missing_types(const std::vector<TypeShape>& types) {
  std::vector<TypeShape> missing;
  for (const TypeShape& type : types) {
    THALWEG_ASSIGN(const std::optional<TypeShape> there, catalogue_.find_type(type.name));
    if (there) {
      THALWEG_TRY(check_same_type(type, *there));
    } else {
      THALWEG_TRY(check_creatable(type));
      missing.push_back(type);
    }
  }
  return missing;
}

base::Result<Present> DestinationSchema::look(const std::vector<const TableShape*>& tables) {
  std::vector<TableName> relations;
  for (const TableShape* table : tables) std::ranges::copy(relations_of(*table), std::back_inserter(relations));
  Present present;
  THALWEG_ASSIGN(present.schemas, catalogue_.schemas());
  THALWEG_ASSIGN(present.relations, catalogue_.existing(relations));
  THALWEG_ASSIGN(present.indexes, catalogue_.indexes(relations));
  return present;
}

base::Result<std::vector<Statement>> DestinationSchema::plan(const std::vector<TypeShape>& types,
                                                             const std::vector<const TableShape*>& tables) {
  THALWEG_ASSIGN(const std::vector<TypeShape> missing, missing_types(types));
  THALWEG_ASSIGN(Present present, look(tables));
  std::vector<Statement> plan;
  for (const TypeShape& type : missing) std::ranges::move(plan_type(type, present), std::back_inserter(plan));
  for (const TableShape* table : tables) std::ranges::move(plan_table(*table, present), std::back_inserter(plan));
  return plan;
}

base::Result<void> DestinationSchema::create(const std::vector<TypeShape>& types,
                                             const std::vector<const TableShape*>& tables, const Warn& warn) {
  THALWEG_ASSIGN(const std::vector<Statement> statements, plan(types, tables));
  return run(statements, Missing::fails, warn);
}

// A key's index has a name of the table's schema, too.
base::Result<void> DestinationSchema::check_key_names(const std::vector<const TableShape*>& tables) {
  std::map<TableName, TableName> keys;  // and their tables
  std::vector<TableName> names;
  for (const TableShape* table : tables) {
    const ConstraintShape* const key = table->primary_key();
    if (key) keys.emplace(names.emplace_back(TableName{table->name.schema, key->name}), table->name);
  }
  THALWEG_ASSIGN(const std::set<TableName> taken, catalogue_.existing(names));
  if (taken.empty()) return {};
  const TableName& name = *taken.begin();
  THALWEG_ASSIGN(const std::string existing, catalogue_.in_words(name));
  return differs(keys.at(name), fmt::format("The primary key of {} cannot be made: the destination's {} has its name. "
                                            "Rename it there.",
                                            keys.at(name).quoted(), existing));
}

base::Result<void> DestinationSchema::rehearse(const std::vector<TypeShape>& types,
                                               const std::vector<const TableShape*>& tables) {
  THALWEG_TRY(check_key_names(tables));
  THALWEG_ASSIGN(std::vector<Statement> statements, plan(types, tables));
  for (const TableShape* table : tables)
    std::ranges::move(plan_primary_key(*table, nullptr), std::back_inserter(statements));
  return run(statements, Missing::fails, [](const std::string&) -> base::Result<void> { return {}; });
}

// Many statements in one round trip. Those of a script that fails go again as two halves, until what the destination
// refuses is alone.
base::Result<void> DestinationSchema::run(std::span<const Statement> statements, Missing missing, const Warn& warn) {
  if (statements.empty()) return {};
  if (statements.size() > kScriptStatements) {
    THALWEG_TRY(run(statements.first(kScriptStatements), missing, warn));
    return run(statements.subspan(kScriptStatements), missing, warn);
  }
  std::string script = "SAVEPOINT thalweg_try";
  for (const Statement& statement : statements) {
    THALWEG_TRY(statement.check_alone());
    script += ";\n" + statement.sql;
  }
  auto tried = connection_.script(script + ";\nRELEASE SAVEPOINT thalweg_try");
  if (tried) return {};
  if (connection_.broken() || !is_refusal(tried.error())) return std::unexpected(tried.error());
  const Statement& first = statements.front();
  if (statements.size() == 1 && missing == Missing::fails && first.is_essential())
    return std::unexpected(tried.error());
  THALWEG_TRY(connection_.script("ROLLBACK TO SAVEPOINT thalweg_try; RELEASE SAVEPOINT thalweg_try"));
  if (statements.size() == 1) return warn(fmt::format("{} left out: {}", first.in_words(), tried.error().message));
  const size_t half = statements.size() / 2;
  THALWEG_TRY(run(statements.first(half), missing, warn));
  return run(statements.subspan(half), missing, warn);
}

base::Result<void> DestinationSchema::check_partition_names(const TableShape& source, const TableShape& destination) {
  if (destination.kind != 'p') return {};
  std::vector<TableName> missing;
  for (const TableShape& partition : source.partitions) {
    const auto there = std::ranges::find(destination.partitions, partition.name, &TableShape::name);
    if (there == destination.partitions.end()) missing.push_back(partition.name);
  }
  THALWEG_ASSIGN(const std::set<TableName> taken, catalogue_.existing(missing));
  if (taken.empty()) return {};
  const TableName& name = *taken.begin();
  THALWEG_ASSIGN(const std::string existing, catalogue_.in_words(name));
  return differs(source.name,
                 fmt::format("{0} is to be a partition of {1}, as at the source. The destination's {2} has that name "
                             "and is no partition of {1}: rename or drop it there, or attach it.",
                             name.quoted(), source.name.quoted(), existing));
}

bool gets_partitions(const TableShape& source, const TableShape& destination, bool created) {
  if (destination.kind != 'p' || source.kind != 'p') return false;
  if (created) return true;
  if (source.partition_key != destination.partition_key) return false;
  const auto is_shared = [&](const TableShape& partition) {
    return std::ranges::find(source.partitions, partition.name, &TableShape::name) != source.partitions.end();
  };
  return destination.partitions.empty() || std::ranges::any_of(destination.partitions, is_shared);
}

base::Result<void> DestinationSchema::add_partitions(const TableShape& table, bool created, const Warn& warn) {
  THALWEG_ASSIGN(const std::optional<TableShape> there, catalogue_.table(table.name));
  if (!there)
    return base::fail(ErrorCode::missing_table, fmt::format("{} is gone from the destination.", table.name.quoted()),
                      base::ErrorSide::destination);
  if (!gets_partitions(table, *there, created)) return {};
  THALWEG_TRY(check_partition_names(table, *there));
  std::set<TableName> existing;
  for (const TableShape& partition : there->partitions) existing.insert(partition.name);
  THALWEG_ASSIGN(Present present, look({}));
  return run(plan_partitions(table, existing, present), Missing::warns, warn);
}

base::Result<void> DestinationSchema::check_empty(const TableShape& table) {
  THALWEG_ASSIGN(const pg::Rows rows,
                 connection_.query(fmt::format("SELECT EXISTS (SELECT FROM {})", read_from(table))));
  if (!rows.boolean(0, 0)) return {};
  base::Error error = base::fail(ErrorCode::destination_table_not_empty,
                                 fmt::format("{} has rows at the destination.", table.name.quoted()))
                          .error();
  error.table = table.name.quoted();
  return std::unexpected(std::move(error));
}

base::Result<void> DestinationSchema::empty_table(const TableName& table) {
  THALWEG_ASSIGN(const pg::Rows others,
                 connection_.query("SELECT n.nspname, c.relname FROM pg_catalog.pg_partition_tree(to_regclass($1)) p "
                                   "JOIN pg_catalog.pg_class c ON c.oid = p.relid JOIN pg_catalog.pg_namespace n ON "
                                   "n.oid = c.relnamespace JOIN thalweg.stream_table t ON n.nspname = "
                                   "coalesce(t.destination_schema, t.schema_name) AND c.relname = "
                                   "coalesce(t.destination_table, t.table_name) WHERE p.level > 0 LIMIT 1",
                                   {table.quoted()}));
  if (others.size() > 0) {
    const TableName other{std::string(others.text(0, 0)), std::string(others.text(0, 1))};
    return differs(table, fmt::format("{0} is a partition of {1} at the destination, and replicated by itself: to "
                                      "empty {1} would delete its rows. ALTER TABLE {1} DETACH PARTITION {0} there.",
                                      other.quoted(), table.quoted()));
  }
  THALWEG_ASSIGN(const pg::Rows referenced,
                 connection_.query("SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' "
                                   "AND k.confrelid = to_regclass($1) AND k.conrelid <> k.confrelid)",
                                   {table.quoted()}));
  // TRUNCATE refuses a table that others reference, whatever their rows.
  // Tables that inherit from it are others, and stay as they are.
  THALWEG_ASSIGN(
      const pg::Rows kind,
      connection_.query("SELECT relkind = 'p' FROM pg_catalog.pg_class WHERE oid = to_regclass($1)", {table.quoted()}));
  const std::string rows = (kind.size() > 0 && kind.boolean(0, 0) ? "" : "ONLY ") + table.quoted();
  THALWEG_TRY(connection_.script(referenced.boolean(0, 0)
                                     ? "SET LOCAL session_replication_role = replica; DELETE FROM " + rows
                                     : "TRUNCATE " + rows));
  return {};
}

base::Result<void> DestinationSchema::rename_table(const TableName& from, const TableName& to) {
  if (from == to) return {};
  THALWEG_ASSIGN(const std::set<TableName> existing, catalogue_.existing({from, to}));
  if (!existing.contains(from)) return {};  // somebody has done it, or dropped it: then the copy's checks say so
  if (existing.contains(to)) {
    return differs(to, fmt::format("{} is to be {} at the destination, which has both. Rename or drop its {}.",
                                   from.quoted(), to.quoted(), to.quoted()));
  }
  const auto rename = [&](const TableName& now, const std::string& name) -> base::Result<void> {
    THALWEG_TRY(
        connection_.script(fmt::format("ALTER TABLE {} RENAME TO {}", now.quoted(), pg::quote_identifier(name))));
    return {};
  };
  if (from.schema == to.schema) return rename(from, to.name);
  THALWEG_ASSIGN(const std::set<std::string> schemas, catalogue_.schemas());
  if (!schemas.contains(to.schema)) {
    THALWEG_TRY(connection_.script("CREATE SCHEMA " + pg::quote_identifier(to.schema)));
  }
  // By way of a name that neither schema has: the new one may be another table's in the old schema, and the old one in
  // the new schema.
  const std::string aside = from.name == to.name ? from.name : "thalweg moves this table";
  if (aside != from.name) THALWEG_TRY(rename(from, aside));
  THALWEG_TRY(connection_.script(fmt::format("ALTER TABLE {} SET SCHEMA {}", TableName{from.schema, aside}.quoted(),
                                             pg::quote_identifier(to.schema))));
  return aside == to.name ? base::Result<void>{} : rename({to.schema, aside}, to.name);
}

}  // namespace thalweg::instantiation
