#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "pg/connection.h"

// The destination's types as trees: what is inside a value of each (pg_type, pg_attribute, pg_range).

namespace thalweg::metadata {

enum class TypeKind : uint8_t { base, enumeration, array, composite, range, multirange };

// Immutable once loaded. Domains do not appear: a domain stands as the node of its base type, under its own oid.
struct TypeNode {
  base::TypeId oid;         // as pg_attribute names it: a domain's own
  base::TypeId value_type;  // the base type that values and parameters have
  base::TypeId array_type;  // array over value_type; 0 where there is none
  std::string name;         // format_type() of oid
  std::string value_name;   // the base type, quoted and with its schema
  // The function that gives a value's binary form, quoted and with its schema; empty where some part of the
  // type has none, or one that is another type's (refcursor).
  std::string send;
  TypeKind kind = TypeKind::base;
  bool is_domain = false;
  bool has_binary_input = true;
  // The binary form contains type oids that differ from one database to the next.
  bool embeds_oids = false;
  std::shared_ptr<const TypeNode> element;              // array, range, multirange (its range)
  std::vector<std::shared_ptr<const TypeNode>> fields;  // composite, dropped attributes left out
};

// Loads and caches. Owner: one thread (the one that owns the connection).
class TypeCatalog {
 public:
  // Fails with what the query fails with, or destination_table_differs where the type, or one within it, does not exist
  // or nests too deep: the message goes on from the name of what has the type.
  base::Result<std::shared_ptr<const TypeNode>> find(pg::Connection& connection, base::TypeId oid);

 private:
  base::Result<std::shared_ptr<const TypeNode>> load(pg::Connection& connection, base::TypeId oid, int depth);
  base::Result<void> load_fields(pg::Connection& connection, base::TypeId relation, TypeNode& node, int depth);

  std::unordered_map<uint32_t, std::shared_ptr<const TypeNode>> nodes_;
};

// Oids below this are the same in every database of every version.
inline constexpr uint32_t kFirstDatabaseOid = 10'000;

}  // namespace thalweg::metadata
