#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "instantiation/table_name.h"

// Tables as a database's catalogs describe them, as far as the other side must have the same. Plain values: catalogue
// fills them, ddl turns them into SQL.

namespace thalweg::instantiation {

struct SequenceShape {
  TableName name;
  std::string type;  // bigint, integer, smallint
  std::string start, increment, minimum, maximum, cache;
  bool cycle = false;
  std::string owner_column;  // of the table that the shape belongs to; empty: owned by none of its columns
};

struct ColumnShape {
  std::string name;
  std::string type;        // as SQL with its modifier: "character varying(10)", "public.mood[]"
  std::string plain_type;  // without the modifier
  base::TypeId type_id;
  int32_t type_modifier = -1;  // pg_attribute.atttypmod
  std::string collation;       // quoted; empty: the type's own
  bool not_null = false;
  std::string default_expression;  // also of generated columns; empty: none
  char identity = 0;               // 'a' always, 'd' by default
  char generated = 0;              // 's' stored, 'v' virtual
  std::optional<SequenceShape> identity_sequence;

  bool is_copied() const { return generated == 0; }
};

struct ConstraintShape {
  std::string name;
  char kind = 0;                        // pg_constraint.contype: p, u, x, c, f
  std::string definition;               // pg_get_constraintdef
  std::vector<std::string> columns;     // key order; p and u only
  std::optional<TableName> references;  // f only
};

struct IndexShape {
  std::string name;
  std::string definition;  // pg_get_indexdef, made to cover partitions
  // Of a unique one that identifies rows: checked at once, without expressions and condition. Else empty.
  std::vector<std::string> key_columns = {};
};

// A table, and the name of an index of it.
using IndexOf = std::pair<TableName, std::string>;

struct TableShape {
  TableName name;
  uint32_t oid = 0;
  char kind = 0;                 // pg_class.relkind
  char persistence = 0;          // p, u, t
  char replica_identity = 0;     // d, n, f, i
  std::string identity_index;    // with i
  bool identity_usable = false;  // its replica identity names a row: by an index that qualifies, or FULL
  double rows_estimated = -1;    // -1: never analysed
  std::string partition_key;     // of a partitioned table
  std::string partition_bound;   // of a partition
  std::optional<TableName> parent;
  std::vector<ColumnShape> columns;
  std::vector<ConstraintShape> constraints;
  std::vector<IndexShape> indexes;
  std::vector<SequenceShape> sequences;  // that defaults draw from
  std::vector<TableShape> partitions;    // every descendant, parents before children

  const ConstraintShape* primary_key() const;
  const ColumnShape* column(const std::string& column_name) const;
};

struct TypeShape {
  base::TypeId id;
  TableName name;                   // schema and name
  char kind = 0;                    // pg_type.typtype; 'a' for an array
  std::string extension;            // that owns it
  std::vector<std::string> labels;  // of an enum, in order
  // Its components, as SQL: a composite's "name type" by attribute, a domain's base type, a range's subtype.
  std::vector<std::string> parts;
  std::vector<std::string> rules;       // of a domain: NOT NULL, and its checks as SQL
  std::vector<std::string> create_sql;  // statements; empty where the engine cannot create it
};

}  // namespace thalweg::instantiation
