#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The catalogs that describe rows, and the columns of them that matter. The order of columns and their places in the
// catalogs differ between versions of PostgreSQL; names and types are the same from 14 to 19.

namespace thalweg::dictionary {

enum class Catalog : uint8_t {
  pg_class,
  pg_attribute,
  pg_type,
  pg_index,
  pg_namespace,
  pg_enum,
  pg_range,
  pg_inherits,
  pg_extension,
};
inline constexpr size_t kCatalogs = 9;

enum class ColumnKind : uint8_t { boolean, character, int2, int4, oid, name, float4, int2vector, element };

struct CatalogColumn {
  std::string_view name;
  ColumnKind kind;
};

// Keys by which a row is looked up: places in CatalogDescription::columns.
inline constexpr size_t kKeysMax = 2;

struct CatalogDescription {
  Catalog catalog;
  std::string_view name;
  uint32_t oid;
  // The file is told by the database's map of files, not by pg_class.
  bool is_mapped;
  std::span<const CatalogColumn> columns;
  std::span<const size_t> keys;
};

const CatalogDescription& description_of(Catalog catalog);
std::optional<Catalog> catalog_of(uint32_t oid);

// Places of the columns that the dictionary itself reads.
namespace class_column {
enum : size_t { oid, filenode, rewrite, tablespace, persistence = 10 };
}

// NULL; booleans, characters and integers; float4; names and vectors as PostgreSQL prints them; an array's only element
// behind a letter that says in what form it is.
using Value = std::variant<std::monostate, int64_t, double, std::string>;
// In the order of CatalogDescription::columns.
using Row = std::vector<Value>;

// As it lies in an array, up to the array's end; or as its type's send function sends it, which is what SQL tells.
inline constexpr char kStoredElement = 'd';
inline constexpr char kSentElement = 's';

// A value as PostgreSQL prints it; of an element, the sent array in hexadecimal digits. Null: that is none of this
// kind.
std::optional<Value> parse_value(ColumnKind kind, std::string_view text);

// Rows of 150 bytes instead of 700, and what files of dictionaries have.
std::string packed(const Row& row);
// Null: those are not a row's bytes.
std::optional<Row> unpacked(std::string_view bytes);
// A packed row without elements, whose form depends on where a row is from: for comparisons.
std::string comparable(const CatalogDescription& catalog, Row row);

}  // namespace thalweg::dictionary
