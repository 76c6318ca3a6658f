#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/catalogue.h"
#include "instantiation/schema_plan.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Makes at the destination what a stream's tables need. Idempotent: what is there stays as it is.

namespace thalweg::instantiation {

using Warn = std::function<base::Result<void>(std::string)>;

// Owner: the connection's owner.
class DestinationSchema {
 public:
  DestinationSchema(pg::Connection& connection, Catalogue& catalogue)
      : connection_(connection), catalogue_(catalogue) {}

  // Those of the types that are not there. Fails for one that is there and differs, and for one that nobody but a user
  // can make.
  base::Result<std::vector<TypeShape>> missing_types(const std::vector<TypeShape>& types);
  base::Result<Present> look(const std::vector<const TableShape*>& tables);

  // Before the copy, within the caller's transaction: schemas, types, sequences, the tables with their partitions,
  // defaults, primary keys. A default that the destination cannot have is left out with a warning.
  base::Result<void> create(const std::vector<TypeShape>& types, const std::vector<const TableShape*>& tables,
                            const Warn& warn);

  // For a table that is there, within the caller's transaction, too: partitions that only the source has; no rows; its
  // other name, unless it bears that already.
  base::Result<void> add_partitions(const TableShape& table, const Warn& warn);
  base::Result<void> empty_table(const TableName& table);
  base::Result<void> rename_table(const TableName& from, const TableName& to);

  // After the copy, each statement by itself: the table's other constraints but foreign keys, and its indexes; then,
  // once every table has its keys, foreign keys to tables that `exists` or that are there anyway. What the destination
  // refuses is left out with a warning; a lost connection is an error.
  base::Result<void> add_constraints(const TableShape& table, const Warn& warn);
  base::Result<void> add_foreign_keys(const TableShape& table, const Warn& warn);

 private:
  base::Result<void> try_in_savepoint(const Statement& statement, const Warn& warn);
  base::Result<void> try_alone(const std::string& sql, const std::string& what, const Warn& warn);
  base::Result<Catalogue::Tables> with_partitions(const TableShape& table);

  pg::Connection& connection_;
  Catalogue& catalogue_;
};

}  // namespace thalweg::instantiation
