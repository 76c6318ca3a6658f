#pragma once

#include <string>
#include <vector>

#include "instantiation/shape.h"

// Shapes as SQL. Pure functions; every name in the result is schema-qualified and quoted.

namespace thalweg::instantiation {

std::string create_sequence_sql(const SequenceShape& sequence);
std::string own_sequence_sql(const TableShape& table, const SequenceShape& sequence);
// Columns with types, collations, NOT NULL, identity and generation; no defaults, no constraints: those may need code
// that the destination does not have.
std::string create_table_sql(const TableShape& table);
std::string create_partition_sql(const TableShape& partition);
std::string set_default_sql(const TableShape& table, const ColumnShape& column);
std::string add_constraint_sql(const TableName& table, const ConstraintShape& constraint);

// `"a", "b"`
std::string column_list(const std::vector<std::string>& names);
// The columns that travel: all but generated ones.
std::vector<std::string> copied_columns(const TableShape& table);

}  // namespace thalweg::instantiation
