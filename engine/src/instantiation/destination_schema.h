#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/catalogue.h"
#include "instantiation/schema_plan.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Creates the objects that a stream's tables need at the destination. Idempotent: existing objects stay as they are.

namespace thalweg::instantiation {

using Warn = std::function<base::Result<void>(std::string)>;

// Owner: the connection's owner.
class DestinationSchema {
 public:
  DestinationSchema(pg::Connection& connection, Catalogue& catalogue)
      : connection_(connection), catalogue_(catalogue) {}

  // Returns the missing ones. Fails for a type that exists and differs, and for one that only a user can create.
  base::Result<std::vector<TypeShape>> missing_types(const std::vector<TypeShape>& types);
  base::Result<Present> look(const std::vector<const TableShape*>& tables);

  // Before the copy, within the caller's transaction: schemas, types, sequences, the tables with their partitions and
  // defaults. A default that the destination cannot have is left out with a warning.
  base::Result<void> create(const std::vector<TypeShape>& types, const std::vector<const TableShape*>& tables,
                            const Warn& warn);
  // Within a transaction that the caller rolls back: as create(), and the primary keys, which come after the rows.
  base::Result<void> rehearse(const std::vector<TypeShape>& types, const std::vector<const TableShape*>& tables);

  // Fails with destination_table_differs where something else has the name of a partition that only the source has.
  base::Result<void> check_partition_names(const TableShape& source, const TableShape& destination);
  // Fails with destination_table_not_empty: a first copy adds to no rows.
  base::Result<void> check_empty(const TableShape& table);
  // For a table that is there, within the caller's transaction, too: partitions that only the source has; no rows; its
  // other name, unless it bears that already; its partitions stay where they are.
  base::Result<void> add_partitions(const TableShape& table, bool created, const Warn& warn);
  base::Result<void> empty_table(const TableName& table);
  base::Result<void> rename_table(const TableName& from, const TableName& to);

 private:
  base::Result<std::vector<Statement>> plan(const std::vector<TypeShape>& types,
                                            const std::vector<const TableShape*>& tables);
  enum class Missing { fails, warns };  // what comes of an essential statement that is refused
  base::Result<void> run(std::span<const Statement> statements, Missing missing, const Warn& warn);
  base::Result<void> check_key_names(const std::vector<const TableShape*>& tables);

  pg::Connection& connection_;
  Catalogue& catalogue_;
};

// Whether partitions that only the source has are made at the destination: of a table that the engine created, or that
// is partitioned by the same key, into partitions of the same names as far as there are any. Others have partitions of
// their own. `source` by its names at the destination.
bool gets_partitions(const TableShape& source, const TableShape& destination, bool created);

// Whether the destination cannot have the object at all. An error that a retry or an operator may cure is not a
// refusal.
bool is_refusal(const base::Error& error);

}  // namespace thalweg::instantiation
