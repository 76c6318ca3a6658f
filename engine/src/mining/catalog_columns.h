#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "dictionary/catalogs.h"

// Internal to mining/: places of the columns in the dictionary's rows (dictionary/catalogs.cc).

namespace thalweg::mining {

namespace class_at {
enum : size_t {
  oid,
  filenode,
  rewrite,
  tablespace,
  name,
  schema,
  type,
  method,
  toast,
  shared,
  persistence,
  kind,
  columns,
  identity
};
}
namespace attribute_at {
enum : size_t {
  relation,
  name,
  type,
  length,
  number,
  modifier,
  by_value,
  align,
  storage,
  compression,
  not_null,
  has_missing,
  identity,
  generated,
  dropped,
  collation,
  missing
};
}
namespace type_at {
enum : size_t {
  oid,
  name,
  schema,
  length,
  by_value,
  kind,
  category,
  relation,
  element,
  array,
  send,
  align,
  storage,
  base
};
}
namespace index_at {
enum : size_t { oid, table, columns, key_columns, unique, primary, immediate, valid, ready, live, identity, key };
}
namespace enum_at {
enum : size_t { oid, type, order, label };
}
namespace range_at {
enum : size_t { type, subtype, multirange };
}
namespace extension_at {
enum : size_t { oid, name, schema };
}

inline int64_t integer(const dictionary::Row& row, size_t column) { return std::get<int64_t>(row[column]); }
inline uint32_t oid(const dictionary::Row& row, size_t column) { return static_cast<uint32_t>(integer(row, column)); }
inline char letter(const dictionary::Row& row, size_t column) { return static_cast<char>(integer(row, column)); }
inline const std::string& text(const dictionary::Row& row, size_t column) { return std::get<std::string>(row[column]); }

}  // namespace thalweg::mining
