#include "instantiation/destination_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "instantiation/comparison.h"
#include "instantiation/ddl.h"

namespace thalweg::instantiation {
namespace {

using base::ErrorClass;
using base::ErrorCode;

// What another try, or somebody's help, may cure is an error of the stream; what the destination cannot have is not.
bool is_refusal(const base::Error& error) {
  return base::class_of(error.code) == ErrorClass::permanent && error.code == ErrorCode::database_error;
}

}  // namespace

base::Result<void> DestinationSchema::create_schema(const std::string& name) {
  THALWEG_ASSIGN(pg::Rows rows, connection_.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", {name}));
  if (rows.size() == 0) THALWEG_TRY(connection_.script("CREATE SCHEMA " + pg::quote_identifier(name)));
  return {};
}

base::Result<void> DestinationSchema::create_types(const std::vector<TypeShape>& types) {
  for (const TypeShape& type : types) {
    THALWEG_ASSIGN(const std::optional<TypeShape> there, catalogue_.find_type(type.name));
    if (there) {
      THALWEG_TRY(check_same_type(type, *there));
      continue;
    }
    if (type.create_sql.empty()) {
      return base::fail(
          ErrorCode::missing_type,
          type.extension.empty()
              ? fmt::format("The type {} cannot be created by the engine.", type.name.quoted())
              : fmt::format("The type {} belongs to the extension {}: run CREATE EXTENSION {} at the destination.",
                            type.name.quoted(), type.extension, pg::quote_identifier(type.extension)));
    }
    THALWEG_TRY(create_schema(type.name.schema));
    for (const std::string& sql : type.create_sql) THALWEG_TRY(connection_.script(sql));
  }
  return {};
}

base::Result<void> DestinationSchema::try_in_savepoint(const std::string& sql, const std::string& what,
                                                       const Warn& warn) {
  THALWEG_TRY(connection_.script("SAVEPOINT thalweg_try"));
  if (auto tried = connection_.script(sql); !tried) {
    if (connection_.broken() || !is_refusal(tried.error())) return std::unexpected(tried.error());
    THALWEG_TRY(connection_.script("ROLLBACK TO SAVEPOINT thalweg_try"));
    THALWEG_TRY(warn(fmt::format("{} left out: {}", what, tried.error().message)));
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

base::Result<void> DestinationSchema::create_table(const TableShape& table, const Warn& warn) {
  THALWEG_TRY(create_schema(table.name.schema));
  std::set<TableName> new_sequences;
  for (const SequenceShape& sequence : table.sequences) {
    THALWEG_TRY(create_schema(sequence.name.schema));
    THALWEG_ASSIGN(bool there, catalogue_.exists(sequence.name));
    if (there) continue;
    THALWEG_TRY(connection_.script(create_sequence_sql(sequence)));
    new_sequences.insert(sequence.name);
  }
  THALWEG_TRY(connection_.script(create_table_sql(table)));
  for (const TableShape& partition : table.partitions) {
    THALWEG_TRY(create_schema(partition.name.schema));
    THALWEG_TRY(connection_.script(create_partition_sql(partition)));
  }
  for (const ColumnShape& column : table.columns) {
    if (column.default_expression.empty() || column.generated != 0) continue;
    THALWEG_TRY(try_in_savepoint(
        set_default_sql(table, column),
        fmt::format("{}: default of {}", table.name.quoted(), pg::quote_identifier(column.name)), warn));
  }
  for (const SequenceShape& sequence : table.sequences) {
    if (new_sequences.contains(sequence.name) && !sequence.owner_column.empty()) {
      THALWEG_TRY(connection_.script(own_sequence_sql(table, sequence)));
    }
  }
  if (const ConstraintShape* key = table.primary_key())
    THALWEG_TRY(connection_.script(add_constraint_sql(table.name, *key)));
  return {};
}

base::Result<void> DestinationSchema::add_constraints_of(const TableShape& source, const TableShape& destination,
                                                         bool foreign_keys, const Warn& warn) {
  for (const ConstraintShape& constraint : source.constraints) {
    if (constraint.kind == 'p' || (constraint.kind == 'f') != foreign_keys) continue;
    if (std::ranges::find(destination.constraints, constraint.name, &ConstraintShape::name) !=
        destination.constraints.end())
      continue;
    std::string what = fmt::format("{}: {} {}", source.name.quoted(), foreign_keys ? "foreign key" : "constraint",
                                   pg::quote_identifier(constraint.name));
    if (constraint.references) {
      THALWEG_ASSIGN(bool there, catalogue_.exists(*constraint.references));
      if (!there) {
        THALWEG_TRY(warn(
            fmt::format("{} left out: {} does not exist at the destination", what, constraint.references->quoted())));
        continue;
      }
    }
    THALWEG_TRY(try_alone(add_constraint_sql(source.name, constraint), what, warn));
  }
  if (foreign_keys) return {};
  for (const IndexShape& index : source.indexes) {
    // Its name is the index's within its schema, whatever it belongs to.
    THALWEG_ASSIGN(bool there, catalogue_.exists({source.name.schema, index.name}));
    if (there) continue;
    THALWEG_TRY(try_alone(index.definition,
                          fmt::format("{}: index {}", source.name.quoted(), pg::quote_identifier(index.name)), warn));
  }
  return {};
}

base::Result<void> DestinationSchema::add_constraints(const TableShape& table, const Warn& warn) {
  THALWEG_ASSIGN(std::optional<TableShape> there, catalogue_.table(table.name));
  if (!there)
    return base::fail(ErrorCode::missing_table, fmt::format("{} is gone from the destination.", table.name.quoted()));
  THALWEG_TRY(add_constraints_of(table, *there, false, warn));
  for (const TableShape& partition : table.partitions) {
    THALWEG_ASSIGN(std::optional<TableShape> other, catalogue_.table(partition.name));
    if (other) THALWEG_TRY(add_constraints_of(partition, *other, false, warn));
  }
  // Statistics: the appliers' statements are planned right after this.
  THALWEG_TRY(try_alone("ANALYZE " + table.name.quoted(), fmt::format("{}: statistics", table.name.quoted()), warn));
  return {};
}

base::Result<void> DestinationSchema::add_foreign_keys(const TableShape& table, const Warn& warn) {
  THALWEG_ASSIGN(std::optional<TableShape> there, catalogue_.table(table.name));
  if (!there)
    return base::fail(ErrorCode::missing_table, fmt::format("{} is gone from the destination.", table.name.quoted()));
  THALWEG_TRY(add_constraints_of(table, *there, true, warn));
  for (const TableShape& partition : table.partitions) {
    THALWEG_ASSIGN(std::optional<TableShape> other, catalogue_.table(partition.name));
    if (other) THALWEG_TRY(add_constraints_of(partition, *other, true, warn));
  }
  return {};
}

}  // namespace thalweg::instantiation
