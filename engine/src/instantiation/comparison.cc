#include "instantiation/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace thalweg::instantiation {
namespace {

using base::ErrorCode;

base::Result<void> refuse(ErrorCode code, const TableName& table, std::string message) {
  base::Error error = base::fail(code, std::move(message)).error();
  error.table = table.quoted();
  return std::unexpected(std::move(error));
}

base::Result<void> check_storage(const TableShape& table) {
  std::string why;
  switch (table.kind) {
    case 'r':
    case 'p':
      break;
    case 'v':
      why = "is a view";
      break;
    case 'm':
      why = "is a materialized view";
      break;
    case 'f':
      why = "is a foreign table";
      break;
    case 'S':
      why = "is a sequence";
      break;
    default:
      why = "is not a table";
      break;
  }
  if (table.persistence == 'u')
    why = "is UNLOGGED: its changes are not in the WAL; run ALTER TABLE ... SET LOGGED at the source";
  if (table.persistence == 't') why = "is a temporary table";
  if (table.name.schema == "pg_catalog" || table.name.schema == "information_schema" ||
      table.name.schema == "thalweg") {
    why = "belongs to the system";
  }
  if (why.empty()) return {};
  return refuse(ErrorCode::unsupported_table, table.name, fmt::format("{} {}.", table.name.quoted(), why));
}

base::Result<void> check_identity(const TableShape& table) {
  if (table.identity_usable) return {};
  if (table.kind == 'p') {
    // Partitions' changes come under the root's name, and with its key.
    const auto by_key = [](const TableShape& partition) {
      return partition.kind == 'r' && partition.replica_identity != 'f';
    };
    if (!table.partitions.empty() && std::ranges::none_of(table.partitions, by_key)) return {};
    return refuse(ErrorCode::replica_identity_missing, table.name,
                  fmt::format("{} has no key that identifies rows; its partitions' own keys do not help. Give it a "
                              "primary key, or set REPLICA IDENTITY FULL for it and for each partition.",
                              table.name.quoted()));
  }
  const ConstraintShape* key = table.primary_key();
  const auto is_generated = [&](const std::string& name) {
    const ColumnShape* column = table.column(name);
    return column && !column->is_copied();
  };
  if (table.replica_identity == 'd' && key && std::ranges::any_of(key->columns, is_generated)) {
    return refuse(ErrorCode::replica_identity_missing, table.name,
                  fmt::format("The primary key of {} has a generated column, which is not replicated. Set REPLICA "
                              "IDENTITY FULL, or use an index without that column.",
                              table.name.quoted()));
  }
  if (table.replica_identity == 'd' && key) {
    return refuse(ErrorCode::replica_identity_missing, table.name,
                  fmt::format("The primary key of {} is deferrable and cannot identify rows.", table.name.quoted()));
  }
  return refuse(ErrorCode::replica_identity_missing, table.name,
                fmt::format("{} has neither a primary key nor a replica identity.", table.name.quoted()));
}

// Whether some unique key of the table has exactly these columns.
bool has_key(const TableShape& table, const std::vector<std::string>& columns) {
  const auto is_wanted = [wanted = std::set(columns.begin(), columns.end())](const std::vector<std::string>& key) {
    return std::set(key.begin(), key.end()) == wanted;
  };
  const auto is_key = [&](const ConstraintShape& constraint) {
    return (constraint.kind == 'p' || constraint.kind == 'u') && is_wanted(constraint.columns);
  };
  return std::ranges::any_of(table.constraints, is_key) ||
         std::ranges::any_of(table.indexes, is_wanted, &IndexShape::key_columns);
}

}  // namespace

base::Result<void> check_source_table(const TableShape& table, bool inserts_only) {
  THALWEG_TRY(check_storage(table));
  if (!inserts_only) THALWEG_TRY(check_identity(table));
  for (const TableShape& partition : table.partitions) {
    THALWEG_TRY(check_storage(partition));
    if (inserts_only) continue;
    auto identified = check_identity(partition);
    if (!identified && table.replica_identity == 'f') {
      identified.error().message += fmt::format(
          " It is a partition of {0}, whose REPLICA IDENTITY FULL PostgreSQL does not pass on: run ALTER "
          "TABLE {1} REPLICA IDENTITY FULL.",
          table.name.quoted(), partition.name.quoted());
    }
    THALWEG_TRY(identified);
  }
  if (std::ranges::none_of(table.columns, &ColumnShape::is_copied)) {
    return refuse(ErrorCode::unsupported_table, table.name,
                  fmt::format("{} has no columns that can be copied.", table.name.quoted()));
  }
  return {};
}

base::Result<void> check_same_table(const TableShape& source, const TableShape& destination,
                                    KeyAtDestination key_rule) {
  const std::string name = destination.name.quoted();
  auto differs = [&](std::string message) {
    return refuse(ErrorCode::destination_table_differs, destination.name, std::move(message));
  };
  if (destination.kind != 'r' && destination.kind != 'p')
    return differs(fmt::format("{} is not a table at the destination.", name));

  for (const ColumnShape& column : source.columns) {
    if (!column.is_copied()) continue;
    const ColumnShape* other = destination.column(column.name);
    if (!other)
      return differs(fmt::format("{} has no column {} at the destination.", name, pg::quote_identifier(column.name)));
    if (other->plain_type != column.plain_type) {
      return differs(fmt::format("Column {} of {} is {} at the source and {} at the destination.",
                                 pg::quote_identifier(column.name), name, column.plain_type, other->plain_type));
    }
    if (other->generated != 0) {
      return differs(fmt::format("Column {} of {} is generated at the destination only.",
                                 pg::quote_identifier(column.name), name));
    }
  }
  for (const ColumnShape& column : destination.columns) {
    const ColumnShape* other = source.column(column.name);
    bool filled = (other && other->is_copied()) || column.generated != 0 || column.identity != 0 ||
                  !column.default_expression.empty();
    if (!filled && column.not_null) {
      return differs(fmt::format("Column {} of {} exists at the destination only, is NOT NULL and has no default.",
                                 pg::quote_identifier(column.name), name));
    }
  }
  const ConstraintShape* key = source.primary_key();
  if (key && key_rule == KeyAtDestination::needed && !has_key(destination, key->columns)) {
    return differs(fmt::format("{} has no primary key or unique index on ({}) at the destination.", name,
                               fmt::join(key->columns, ", ")));
  }
  return {};
}

base::Result<void> check_creatable(const TypeShape& type) {
  if (!type.create_sql.empty()) return {};
  return refuse(
      ErrorCode::missing_type, type.name,
      type.extension.empty()
          ? fmt::format("The type {} cannot be created by the engine.", type.name.quoted())
          : fmt::format("The type {} belongs to the extension {}: run CREATE EXTENSION {} at the destination.",
                        type.name.quoted(), type.extension, pg::quote_identifier(type.extension)));
}

base::Result<void> check_same_type(const TypeShape& source, const TypeShape& destination) {
  if (source.kind != destination.kind) {
    return refuse(ErrorCode::destination_table_differs, source.name,
                  fmt::format("The type {} is of another kind at the destination.", source.name.quoted()));
  }
  if (source.extension.empty() && source.parts != destination.parts) {
    return refuse(ErrorCode::destination_table_differs, source.name,
                  fmt::format("The type {} is of ({}) at the source and of ({}) at the destination.",
                              source.name.quoted(), fmt::join(source.parts, ", "), fmt::join(destination.parts, ", ")));
  }
  for (const std::string& rule : destination.rules) {
    if (std::ranges::find(source.rules, rule) == source.rules.end()) {
      return refuse(ErrorCode::destination_table_differs, source.name,
                    fmt::format("The domain {} has {} at the destination only, which could refuse the source's values.",
                                source.name.quoted(), rule));
    }
  }
  for (const std::string& label : source.labels) {
    if (std::ranges::find(destination.labels, label) == destination.labels.end()) {
      return refuse(ErrorCode::destination_table_differs, source.name,
                    fmt::format("The enum {} lacks the label '{}' at the destination.", source.name.quoted(), label));
    }
  }
  return {};
}

}  // namespace thalweg::instantiation
