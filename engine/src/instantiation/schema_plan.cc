#include "instantiation/schema_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "instantiation/ddl.h"
#include "pg/one_statement.h"

namespace thalweg::instantiation {
namespace {

using Plan = std::vector<Statement>;

void plan_schema(const std::string& schema, Present& present, Plan& plan) {
  if (!present.schemas.insert(schema).second) return;
  plan.push_back({.part = Part::schema,
                  .table = {schema, ""},
                  .name = schema,
                  .sql = "CREATE SCHEMA " + pg::quote_identifier(schema),
                  .references = {}});
}

bool has_constraint(const TableShape* there, const std::string& name) {
  return there && std::ranges::find(there->constraints, name, &ConstraintShape::name) != there->constraints.end();
}

}  // namespace

std::string_view name_of(Part part) {
  switch (part) {
    case Part::schema:
      return "schema";
    case Part::type:
      return "type";
    case Part::sequence:
      return "sequence";
    case Part::table:
      return "table";
    case Part::partition:
      return "partition";
    case Part::column_default:
      return "default of";
    case Part::primary_key:
      return "primary key";
    case Part::constraint:
      return "constraint";
    case Part::index:
      return "index";
    case Part::replica_identity:
      return "replica identity of";
    case Part::statistics:
      return "statistics of";
    case Part::foreign_key:
      return "foreign key";
  }
  return "";
}

base::Result<void> Statement::check_alone() const {
  if (pg::is_one_statement(sql)) return {};
  base::Error error =
      base::fail(base::ErrorCode::unsupported_table,
                 fmt::format("{}: the source describes it by more than one statement, which is not run.", in_words()))
          .error();
  error.table = table.quoted();
  return std::unexpected(std::move(error));
}

std::string Statement::in_words() const {
  return fmt::format("{}: {} {}", table.quoted(), name_of(part), pg::quote_identifier(name));
}

std::vector<TableName> relations_of(const TableShape& table) {
  std::vector<TableName> relations;
  for (const SequenceShape& sequence : table.sequences) relations.push_back(sequence.name);
  // An index's name is of its table's schema, whatever relation has it.
  for (const IndexShape& index : table.indexes) relations.push_back({table.name.schema, index.name});
  for (const ConstraintShape& constraint : table.constraints) {
    if (constraint.references) relations.push_back(*constraint.references);
  }
  return relations;
}

Plan plan_type(const TypeShape& type, Present& present) {
  Plan plan;
  plan_schema(type.name.schema, present, plan);
  for (const std::string& sql : type.create_sql)
    plan.push_back({.part = Part::type, .table = type.name, .name = type.name.name, .sql = sql, .references = {}});
  return plan;
}

Plan plan_table(const TableShape& table, Present& present) {
  Plan plan;
  const auto add = [&](Part part, const TableName& of, const std::string& name, std::string sql) {
    plan.push_back({.part = part, .table = of, .name = name, .sql = std::move(sql), .references = {}});
  };
  plan_schema(table.name.schema, present, plan);
  std::vector<const SequenceShape*> owned;
  for (const SequenceShape& sequence : table.sequences) {
    plan_schema(sequence.name.schema, present, plan);
    if (!present.relations.insert(sequence.name).second) continue;
    add(Part::sequence, sequence.name, sequence.name.name, create_sequence_sql(sequence));
    if (!sequence.owner_column.empty()) owned.push_back(&sequence);
  }
  add(Part::table, table.name, table.name.name, create_table_sql(table));
  present.relations.insert(table.name);
  std::ranges::move(plan_partitions(table, {}, present), std::back_inserter(plan));
  for (const ColumnShape& column : table.columns) {
    if (column.default_expression.empty() || column.generated != 0) continue;
    add(Part::column_default, table.name, column.name, set_default_sql(table, column));
  }
  for (const SequenceShape* sequence : owned)
    add(Part::sequence, table.name, sequence->name.name, own_sequence_sql(table, *sequence));
  return plan;
}

Plan plan_partitions(const TableShape& table, const std::set<TableName>& existing, Present& present) {
  Plan plan;
  for (const TableShape& partition : table.partitions) {
    if (existing.contains(partition.name)) continue;
    plan_schema(partition.name.schema, present, plan);
    plan.push_back({.part = Part::partition,
                    .table = table.name,
                    .name = partition.name.name,
                    .sql = create_partition_sql(partition),
                    .references = {}});
    present.relations.insert(partition.name);
  }
  return plan;
}

Plan plan_primary_key(const TableShape& table, const TableShape* there) {
  const ConstraintShape* key = table.primary_key();
  if (!key || (there && there->primary_key())) return {};
  return {{.part = Part::primary_key,
           .table = table.name,
           .name = key->name,
           .sql = add_constraint_sql(table.name, *key),
           .references = {}}};
}

Plan plan_constraints(const TableShape& table, const TableShape* there) {
  Plan plan;
  for (const ConstraintShape& constraint : table.constraints) {
    if (constraint.kind == 'p' || constraint.kind == 'f' || has_constraint(there, constraint.name)) continue;
    plan.push_back({.part = Part::constraint,
                    .table = table.name,
                    .name = constraint.name,
                    .sql = add_constraint_sql(table.name, constraint),
                    .references = {}});
  }
  return plan;
}

Plan plan_indexes(const TableShape& table, Present& present) {
  Plan plan;
  for (const IndexShape& index : table.indexes) {
    // Where something else has the name, the destination says so when it refuses the statement.
    if (!present.indexes.insert({table.name, index.name}).second) continue;
    present.relations.insert({table.name.schema, index.name});
    plan.push_back(
        {.part = Part::index, .table = table.name, .name = index.name, .sql = index.definition, .references = {}});
  }
  return plan;
}

Plan plan_replica_identity(const TableShape& table, const TableShape* there) {
  if (table.replica_identity == (there ? there->replica_identity : 'd')) return {};
  std::string identity = "DEFAULT";
  if (table.replica_identity == 'f') identity = "FULL";
  if (table.replica_identity == 'n') identity = "NOTHING";
  if (table.replica_identity == 'i') identity = "USING INDEX " + pg::quote_identifier(table.identity_index);
  return {{.part = Part::replica_identity,
           .table = table.name,
           .name = table.name.name,
           .sql = fmt::format("ALTER TABLE {} REPLICA IDENTITY {}", table.name.quoted(), identity),
           .references = {}}};
}

Statement plan_statistics(const TableName& table) {
  return {.part = Part::statistics,
          .table = table,
          .name = table.name,
          .sql = "ANALYZE " + table.quoted(),
          .references = {}};
}

Plan plan_foreign_keys(const TableShape& table, const TableShape* there) {
  Plan plan;
  for (const ConstraintShape& constraint : table.constraints) {
    if (constraint.kind != 'f' || has_constraint(there, constraint.name)) continue;
    plan.push_back({.part = Part::foreign_key,
                    .table = table.name,
                    .name = constraint.name,
                    .sql = add_constraint_sql(table.name, constraint),
                    .references = constraint.references});
  }
  return plan;
}

}  // namespace thalweg::instantiation
