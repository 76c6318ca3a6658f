#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "instantiation/shape.h"

// The names of a stream's tables at the destination, and a table's shape under them. Plain values and pure functions.

namespace thalweg::instantiation {

// Immutable once filled.
class DestinationNames {
 public:
  void add(const TableName& table, const TableName& there) { names_.insert_or_assign(table, there); }
  // Partitions, and sequences of its columns, that are in the table's schema go along into another one, under their own
  // names.
  void add_parts(const TableShape& table);
  // A table's name at the destination: its own if it has no other there.
  const TableName& of(const TableName& table) const;
  bool empty() const { return names_.empty(); }

 private:
  std::map<TableName, TableName> names_;
};

// The table as the destination has it, or is to get it, by its own name and those that its definitions mention: parents
// of partitions, sequences, the tables of foreign keys.
TableShape named_there(TableShape table, const DestinationNames& names);

// `REFERENCES table(` of a foreign key's definition, as PostgreSQL writes it, with another table's name in it. As it is
// where it references no such table.
std::string with_reference(const std::string& definition, const TableName& table, const TableName& other);

}  // namespace thalweg::instantiation
