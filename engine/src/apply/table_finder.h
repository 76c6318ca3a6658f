#pragma once

#include "base/error.h"
#include "metadata/source_table.h"
#include "metadata/table_metadata.h"

// Where whoever executes a transaction gets its tables' metadata from.

namespace thalweg::apply {

// Owner: one thread.
class TableFinder {
 public:
  virtual ~TableFinder() = default;
  // Valid until release(), and as long as the transaction that is being executed has not committed. Fails as
  // TableLoader::load.
  virtual base::Result<const metadata::TableMetadata*> find(const metadata::SourceTable& source) = 0;
  // Gives back what was found: none of it is used any more.
  virtual void release() = 0;
};

}  // namespace thalweg::apply
