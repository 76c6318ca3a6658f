#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "dictionary/catalog_file.h"
#include "dictionary/catalog_layout.h"
#include "pg/connection.h"
#include "wal/record_parts.h"

// The catalogs as the source tells them by SQL, in the snapshot with which a capture starts.

namespace thalweg::dictionary {

struct SelectedRow {
  Place place;
  std::string row;  // packed
};

struct CatalogContents {
  wal::RelationFile file;
  std::vector<StoredColumn> columns;
  std::vector<SelectedRow> rows;
};

// Of one database.
struct FirstContents {
  base::Lsn as_of;  // what committed before it is in them, and nothing else
  std::array<CatalogContents, kCatalogs> catalogs;
};

// Over a connection to the database, in a transaction that has the snapshot of `as_of`.
base::Result<FirstContents> read_first_contents(pg::Connection& source, base::Lsn as_of);

}  // namespace thalweg::dictionary
