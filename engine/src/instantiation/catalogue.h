#pragma once

#include <initializer_list>
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
  // Tables that are there; it takes the same number of statements for one and for a thousand.
  using Tables = std::map<TableName, TableShape>;
  base::Result<Tables> tables(const std::vector<TableName>& names);
  // The user-defined types that the table's columns need, each after those it needs itself. Types that were
  // returned by an earlier call come again only if `seen` was emptied.
  base::Result<void> types_of(const TableShape& table, std::set<uint32_t>& seen, std::vector<TypeShape>& out);
  // The same of one type by its OID, which is the last of them unless it is built in.
  base::Result<void> collect_type(uint32_t oid, std::set<uint32_t>& seen, std::vector<TypeShape>& out);
  // The relations, tables or others, that are there.
  base::Result<std::set<TableName>> existing(const std::vector<TableName>& relations);
  // A relation in words: "index public.r_pkey of public.z".
  base::Result<std::string> in_words(const TableName& relation);
  base::Result<std::set<IndexOf>> indexes(const std::vector<TableName>& relations);  // those that are indexes
  base::Result<std::set<std::string>> schemas();
  // nullopt when there is no type of that name.
  base::Result<std::optional<TypeShape>> find_type(const TableName& name);

 private:
  struct Type;
  struct Targets;
  base::Result<const Type*> type(uint32_t oid);
  base::Result<void> describe(const Type& type, TypeShape& out);
  // `chosen`: what follows the query's joins.
  base::Result<std::vector<TableShape>> read_relations(const std::string& chosen,
                                                       std::initializer_list<std::string_view> parameters);
  base::Result<void> read_columns(const Targets& targets);
  base::Result<void> read_constraints(const Targets& targets, bool inherited_too);
  base::Result<void> read_indexes(const Targets& targets, bool inherited_too);
  base::Result<void> read_sequences(const Targets& targets);
  base::Result<void> read_partitions(const Targets& roots);

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
