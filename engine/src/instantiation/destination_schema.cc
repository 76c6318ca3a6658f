#include "instantiation/destination_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "instantiation/comparison.h"

namespace thalweg::instantiation {
namespace {

using base::ErrorClass;
using base::ErrorCode;

// What another try, or somebody's help, may cure is an error of the stream; what the destination cannot have is not.
bool is_refusal(const base::Error& error) {
  return base::class_of(error.code) == ErrorClass::permanent && error.code == ErrorCode::database_error;
}

}  // namespace

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
  return present;
}

base::Result<void> DestinationSchema::create(const std::vector<TypeShape>& types,
                                             const std::vector<const TableShape*>& tables, const Warn& warn) {
  THALWEG_ASSIGN(const std::vector<TypeShape> missing, missing_types(types));
  THALWEG_ASSIGN(Present present, look(tables));
  std::vector<Statement> plan;
  for (const TypeShape& type : missing) std::ranges::move(plan_type(type, present), std::back_inserter(plan));
  for (const TableShape* table : tables) std::ranges::move(plan_table(*table, present), std::back_inserter(plan));
  for (const Statement& statement : plan) {
    if (statement.is_essential()) {
      THALWEG_TRY(connection_.script(statement.sql));
    } else {
      THALWEG_TRY(try_in_savepoint(statement, warn));
    }
  }
  return {};
}

base::Result<void> DestinationSchema::try_in_savepoint(const Statement& statement, const Warn& warn) {
  THALWEG_TRY(connection_.script("SAVEPOINT thalweg_try"));
  if (auto tried = connection_.script(statement.sql); !tried) {
    if (connection_.broken() || !is_refusal(tried.error())) return std::unexpected(tried.error());
    THALWEG_TRY(connection_.script("ROLLBACK TO SAVEPOINT thalweg_try"));
    THALWEG_TRY(warn(fmt::format("{} left out: {}", statement.what(), tried.error().message)));
  }
  THALWEG_TRY(connection_.script("RELEASE SAVEPOINT thalweg_try"));
  return {};
}

base::Result<void> DestinationSchema::try_alone(const std::string& sql, const std::string& what, const Warn& warn) {
  auto tried = connection_.script(sql);
  if (tried) return {};
  if (connection_.broken() || !is_refusal(tried.error())) return std::unexpected(tried.error());
  return warn(fmt::format("{} left out: {}", what, tried.error().message));
}

base::Result<Catalogue::Tables> DestinationSchema::with_partitions(const TableShape& table) {
  std::vector<TableName> names{table.name};
  for (const TableShape& partition : table.partitions) names.push_back(partition.name);
  THALWEG_ASSIGN(Catalogue::Tables there, catalogue_.tables(names));
  if (!there.contains(table.name))
    return base::fail(ErrorCode::missing_table, fmt::format("{} is gone from the destination.", table.name.quoted()));
  return there;
}

base::Result<void> DestinationSchema::add_partitions(const TableShape& table, const Warn& warn) {
  THALWEG_ASSIGN(const Catalogue::Tables there, with_partitions(table));
  if (there.at(table.name).kind != 'p') return {};
  std::set<TableName> existing;
  for (const auto& [name, shape] : there) existing.insert(name);
  THALWEG_ASSIGN(Present present, look({}));
  for (const Statement& statement : plan_partitions(table, existing, present))
    THALWEG_TRY(try_in_savepoint(statement, warn));
  return {};
}

base::Result<void> DestinationSchema::empty_table(const TableName& table) {
  THALWEG_ASSIGN(const pg::Rows referenced,
                 connection_.query("SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' "
                                   "AND k.confrelid = to_regclass($1) AND k.conrelid <> k.confrelid)",
                                   {table.quoted()}));
  // TRUNCATE refuses a table that others reference, whatever their rows.
  THALWEG_TRY(connection_.script(referenced.boolean(0, 0)
                                     ? "SET LOCAL session_replication_role = replica; DELETE FROM " + table.quoted()
                                     : "TRUNCATE " + table.quoted()));
  return {};
}

base::Result<void> DestinationSchema::rename_table(const TableName& from, const TableName& to) {
  THALWEG_ASSIGN(const std::set<TableName> existing, catalogue_.existing({from, to}));
  if (!existing.contains(from)) return {};  // somebody has done it, or dropped it: then the copy's checks say so
  if (existing.contains(to)) {
    base::Error both = base::fail(ErrorCode::destination_table_differs,
                                  fmt::format("{} was renamed to {} at the source; the destination has both. Rename or "
                                              "drop its {}.",
                                              from.quoted(), to.quoted(), to.quoted()))
                           .error();
    both.table = to.quoted();
    return std::unexpected(std::move(both));
  }
  TableName at = from;
  if (from.schema != to.schema) {
    THALWEG_ASSIGN(const std::set<std::string> schemas, catalogue_.schemas());
    if (!schemas.contains(to.schema))
      THALWEG_TRY(connection_.script("CREATE SCHEMA " + pg::quote_identifier(to.schema)));
    THALWEG_TRY(
        connection_.script(fmt::format("ALTER TABLE {} SET SCHEMA {}", at.quoted(), pg::quote_identifier(to.schema))));
    at.schema = to.schema;
  }
  if (from.name == to.name) return {};
  THALWEG_TRY(
      connection_.script(fmt::format("ALTER TABLE {} RENAME TO {}", at.quoted(), pg::quote_identifier(to.name))));
  return {};
}

base::Result<void> DestinationSchema::add_constraints(const TableShape& table, const Warn& warn) {
  THALWEG_ASSIGN(const Catalogue::Tables there, with_partitions(table));
  std::vector<const TableShape*> tables{&table};
  for (const TableShape& partition : table.partitions) tables.push_back(&partition);
  THALWEG_ASSIGN(Present present, look(tables));
  for (const TableShape* one : tables) {
    const auto found = there.find(one->name);
    if (found == there.end()) continue;  // a partition that somebody dropped
    for (const Statement& statement : plan_constraints(*one, &found->second, present))
      THALWEG_TRY(try_alone(statement.sql, statement.what(), warn));
  }
  // Statistics: the appliers' statements are planned right after this.
  return try_alone("ANALYZE " + table.name.quoted(), fmt::format("{}: statistics", table.name.quoted()), warn);
}

base::Result<void> DestinationSchema::add_foreign_keys(const TableShape& table, const Warn& warn) {
  THALWEG_ASSIGN(const Catalogue::Tables there, with_partitions(table));
  std::vector<const TableShape*> tables{&table};
  for (const TableShape& partition : table.partitions) tables.push_back(&partition);
  THALWEG_ASSIGN(const Present present, look(tables));
  for (const TableShape* one : tables) {
    const auto found = there.find(one->name);
    if (found == there.end()) continue;
    for (const Statement& statement : plan_foreign_keys(*one, &found->second)) {
      if (present.relations.contains(*statement.references)) {
        THALWEG_TRY(try_alone(statement.sql, statement.what(), warn));
      } else {
        THALWEG_TRY(warn(fmt::format("{} left out: {} does not exist at the destination", statement.what(),
                                     statement.references->quoted())));
      }
    }
  }
  return {};
}

}  // namespace thalweg::instantiation
