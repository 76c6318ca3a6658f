#pragma once

#include <set>
#include <string>
#include <vector>

#include "instantiation/shape.h"

// The statements that make a stream's tables at the destination, in order. Pure functions: destination_schema runs
// them, rehearsal tries them.

namespace thalweg::instantiation {

enum class Part {
  schema,
  type,
  sequence,
  table,
  partition,
  column_default,
  primary_key,
  constraint,
  index,
  replica_identity,
  statistics,
  foreign_key
};
std::string_view name_of(Part part);  // as a message says it: "foreign key"

struct Statement {
  Part part;
  TableName table;   // that needs it; of a type or a sequence: itself
  std::string name;  // of the column, constraint or index; empty where the part is the table
  std::string sql;
  std::optional<TableName> references;  // of a foreign key
  // Of one that is tried with another table (stand_in.h): what it references and is.
  std::optional<std::pair<TableName, std::string>> stands_for = {};

  // A part that a table can do without is left out, with a warning, where the destination refuses it.
  bool is_essential() const { return part < Part::column_default || part == Part::primary_key; }
  std::string in_words() const;  // `"public"."t": index "i"`
  // Texts of the source's are in it: where they hold a second statement, it is not run. Fails with unsupported_table.
  base::Result<void> check_alone() const;
};

// Objects at the destination that the plan may name. The plan adds those that it makes.
struct Present {
  std::set<std::string> schemas;
  std::set<TableName> relations;
  std::set<IndexOf> indexes;  // those among the relations
};
// The relations to look up for Present: sequences, indexes, and the tables that foreign keys name.
std::vector<TableName> relations_of(const TableShape& table);

// Statements before the copy. `type` must be missing, and have create_sql.
std::vector<Statement> plan_type(const TypeShape& type, Present& present);
// The table with its partitions, sequences and defaults. It must be missing.
std::vector<Statement> plan_table(const TableShape& table, Present& present);

// Statements for the partitions of an existing table that `existing` lacks.
std::vector<Statement> plan_partitions(const TableShape& table, const std::set<TableName>& existing, Present& present);

// After the rows. `there`: the table as the destination has it, or nullptr when the plan makes it. Constraints without
// the primary key and foreign keys.
std::vector<Statement> plan_primary_key(const TableShape& table, const TableShape* there);
std::vector<Statement> plan_constraints(const TableShape& table, const TableShape* there);
std::vector<Statement> plan_indexes(const TableShape& table, Present& present);
std::vector<Statement> plan_replica_identity(const TableShape& table, const TableShape* there);
Statement plan_statistics(const TableName& table);
std::vector<Statement> plan_foreign_keys(const TableShape& table, const TableShape* there);

}  // namespace thalweg::instantiation
