#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "instantiation/shape.h"
#include "pg/connection.h"

// Reads shapes from a database's system catalogs (PostgreSQL documentation, chapter "System Catalogs").

namespace thalweg::instantiation {

// Owner: the thread that owns the connection. Every name comes back schema-qualified: the catalogue sets the
// session's search_path to empty.
class Catalogue {
 public:
  explicit Catalogue(pg::Connection& connection) : connection_(connection) {}

  base::Result<void> open();
  // nullopt when there is no relation of that name.
  base::Result<std::optional<TableShape>> table(const TableName& name);
  // The user-defined types that the table's columns need, each after those it needs itself. Types that were
  // returned by an earlier call come again only if `seen` was emptied.
  base::Result<void> types_of(const TableShape& table, std::set<uint32_t>& seen, std::vector<TypeShape>& out);
  base::Result<bool> exists(const TableName& relation);
  // nullopt when there is no type of that name.
  base::Result<std::optional<TypeShape>> find_type(const TableName& name);

 private:
  struct Type;
  base::Result<const Type*> type(uint32_t oid);
  base::Result<void> collect_type(uint32_t oid, std::set<uint32_t>& seen, std::vector<TypeShape>& out);
  base::Result<void> describe(const Type& type, TypeShape& out);
  base::Result<std::optional<TableShape>> read_relation(const std::string& where, std::string_view parameter);
  base::Result<void> read_columns(TableShape& table);
  base::Result<void> read_constraints(TableShape& table, bool inherited_too);
  base::Result<void> read_indexes(TableShape& table, bool inherited_too);
  base::Result<void> read_sequences(TableShape& table);
  base::Result<void> read_partitions(TableShape& table);

  struct Type {
    uint32_t oid = 0;
    TableName name;
    char kind = 0;  // typtype; 'a' for arrays
    bool user_defined = false;
    std::string extension;
    std::vector<uint32_t> parts;  // element, base type, attributes, subtype
  };
  pg::Connection& connection_;
  std::map<uint32_t, Type> types_;
};

}  // namespace thalweg::instantiation
