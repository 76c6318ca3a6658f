#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The few tables that both databases of the world have, and what a change does to them.

namespace thalweg::simulation {

using Value = std::optional<std::string>;  // in PostgreSQL's binary form
using Row = std::vector<Value>;

std::string int8_value(int64_t number);

struct ColumnShape {
  std::string name;
  uint32_t type;         // 20: bigint, 25: text
  bool is_gone = false;  // at the destination: rows have NULL in its place
};

struct TableShape {
  std::string name;
  uint32_t oid;  // at the source; 1000 more at the destination
  std::vector<ColumnShape> columns;
  int key = -1;      // column of the primary key; none: replica identity full
  int unique = -1;   // column with a unique index; NULLs do not collide
  int foreign = -1;  // column that refers to the key of `parent`
  int parent = -1;
  int toasted = -1;  // column whose value an update may leave out
  // The number of a column in the catalog, from 1, among those that are there.
  size_t attribute(size_t column) const;
  uint32_t destination_oid() const { return oid + 1000; }
  uint32_t key_index() const { return oid + 2000; }  // at the destination
  uint32_t unique_index() const { return oid + 3000; }
};
const std::vector<TableShape>& shapes();
// The same tables as the destinations have them: with other names, and without columns that never come.
const std::vector<TableShape>& shapes_there();
void set_shapes_there(std::vector<TableShape> shapes);
int table_by_name(const std::string& name);  // at the destinations; -1: none
// Of the values of the columns that are there.
Row whole_row(const TableShape& shape, const Row& values);

struct Table {
  std::map<std::string, Row> rows;  // by key
  std::map<Row, int> bag;           // of a table without a key: how often
  bool operator==(const Table&) const = default;
};
using Data = std::vector<Table>;
Data empty_data();

// One change, with the row before and after.
struct Change {
  enum class Kind : uint8_t { insert, update, remove, truncate };
  Kind kind;
  int table;
  Row before;
  Row after;
  bool is_partial = false;  // an update that leaves the value of the toasted column out
};
// Whether a value of a unique index must be free at once, or when everything that commits together has been applied: a
// row that is merged away is never written.
enum class UniqueCheck : uint8_t { at_once, at_end };
// False when the row before is not there, or a key is taken: then nothing was changed.
bool apply_change(Data& data, const Change& change, UniqueCheck unique = UniqueCheck::at_once);
// At the end: whether what the change left, if anything, has its unique value for itself.
bool keeps_unique(const Data& data, const Change& change);
std::string describe(const Change& change);
std::string describe_difference(const Data& actual, const Data& expected);

}  // namespace thalweg::simulation
