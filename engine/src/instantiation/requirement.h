#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Objects beside types that tables need and the engine does not bring: extensions, and functions that defaults,
// generated columns, checks and indexes call.

namespace thalweg::instantiation {

struct Requirement {
  std::string extension;             // empty: a function that belongs to none
  std::string function;              // with its argument types, schema-qualified; empty: an extension
  std::string schema;                // of the extension
  std::vector<std::string> schemas;  // of the function and of the types that come before it
  std::string definition;            // of the function, as SQL, after the types of its arguments and its result
  std::string types;                 // these types in words; empty: none that the source's users have made

  TableName table;   // that needs it
  std::string part;  // its column, constraint or index; empty: its types or generated columns, which are the table

  bool is_extension() const { return !extension.empty(); }
};

// Requirements of the tables and their partitions; one entry for each part that needs it.
base::Result<std::vector<Requirement>> read_requirements(pg::Connection& source, const std::vector<TableShape>& tables);

struct Lack {
  const Requirement* requirement;
  std::string cure;       // in words
  std::string statement;  // the cure as SQL; first the schemas, where the role that asks may then make tables, too
};
// The requirements that the destination does not meet.
base::Result<std::vector<Lack>> find_lacks(pg::Connection& destination, const std::vector<Requirement>& requirements);

}  // namespace thalweg::instantiation
