#include "instantiation/ddl.h"

#include <fmt/format.h>

namespace thalweg::instantiation {
namespace {

std::string sequence_options(const SequenceShape& sequence) {
  return fmt::format("START WITH {} INCREMENT BY {} MINVALUE {} MAXVALUE {} CACHE {} {}", sequence.start,
                     sequence.increment, sequence.minimum, sequence.maximum, sequence.cache,
                     sequence.cycle ? "CYCLE" : "NO CYCLE");
}

std::string column_sql(const ColumnShape& column) {
  std::string sql = fmt::format("{} {}", pg::quote_identifier(column.name), column.type);
  if (!column.collation.empty()) sql += " COLLATE " + column.collation;
  if (column.generated != 0) {
    sql += fmt::format(" GENERATED ALWAYS AS ({}) {}", column.default_expression,
                       column.generated == 'v' ? "VIRTUAL" : "STORED");
  }
  if (column.not_null) sql += " NOT NULL";
  if (column.identity != 0) {
    sql += fmt::format(" GENERATED {} AS IDENTITY", column.identity == 'a' ? "ALWAYS" : "BY DEFAULT");
    if (column.identity_sequence) sql += fmt::format(" ({})", sequence_options(*column.identity_sequence));
  }
  return sql;
}

std::string partition_by(const TableShape& table) {
  return table.partition_key.empty() ? "" : fmt::format(" PARTITION BY {}", table.partition_key);
}

}  // namespace

std::string create_sequence_sql(const SequenceShape& sequence) {
  return fmt::format("CREATE SEQUENCE IF NOT EXISTS {} AS {} {}", sequence.name.quoted(), sequence.type,
                     sequence_options(sequence));
}

std::string own_sequence_sql(const TableShape& table, const SequenceShape& sequence) {
  return fmt::format("ALTER SEQUENCE {} OWNED BY {}.{}", sequence.name.quoted(), table.name.quoted(),
                     pg::quote_identifier(sequence.owner_column));
}

std::string create_table_sql(const TableShape& table) {
  std::string columns;
  for (const ColumnShape& column : table.columns) {
    columns += (columns.empty() ? "\n  " : ",\n  ") + column_sql(column);
  }
  return fmt::format("CREATE TABLE {} ({}){}", table.name.quoted(), columns, partition_by(table));
}

std::string create_partition_sql(const TableShape& partition) {
  return fmt::format("CREATE TABLE {} PARTITION OF {} {}{}", partition.name.quoted(), partition.parent->quoted(),
                     partition.partition_bound, partition_by(partition));
}

std::string set_default_sql(const TableShape& table, const ColumnShape& column) {
  return fmt::format("ALTER TABLE {} ALTER COLUMN {} SET DEFAULT {}", table.name.quoted(),
                     pg::quote_identifier(column.name), column.default_expression);
}

std::string add_constraint_sql(const TableName& table, const ConstraintShape& constraint) {
  return fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", table.quoted(), pg::quote_identifier(constraint.name),
                     constraint.definition);
}

std::string column_list(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + pg::quote_identifier(name);
  return list;
}

std::vector<std::string> copied_columns(const TableShape& table) {
  std::vector<std::string> names;
  for (const ColumnShape& column : table.columns) {
    if (column.is_copied()) names.push_back(column.name);
  }
  return names;
}

}  // namespace thalweg::instantiation
