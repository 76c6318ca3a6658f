#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dictionary/catalogs.h"
#include "wal/heap_page.h"

// Where the columns of a catalog lie in its tuples (heap_deform_tuple of src/backend/access/common/heaptuple.c).

namespace thalweg::dictionary {

// A column of a catalog, as its row of pg_attribute has it. By attnum, from 1 on without gaps.
struct StoredColumn {
  std::string name;
  int16_t length = 0;  // attlen: -1 begins with its length
  char align = 'c';    // attalign
};

// Immutable.
class CatalogLayout {
 public:
  // Null: a column that matters is not among them.
  static std::optional<CatalogLayout> of(const CatalogDescription& catalog, std::vector<StoredColumn> stored);

  // Null: the tuple is no row of this catalog.
  std::optional<Row> row(const wal::HeapTuple& tuple) const;
  const std::vector<StoredColumn>& stored() const { return stored_; }

 private:
  CatalogLayout(const CatalogDescription& catalog, std::vector<StoredColumn> stored, std::vector<size_t> wanted)
      : catalog_(&catalog), stored_(std::move(stored)), wanted_(std::move(wanted)) {}
  const CatalogDescription* catalog_;
  std::vector<StoredColumn> stored_;
  // For each stored column its place among those that matter; kNotWanted: it does not.
  std::vector<size_t> wanted_;
};

}  // namespace thalweg::dictionary
