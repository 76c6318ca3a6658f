#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "capture/stream_rules.h"
#include "pg/connection.h"
#include "transform/step.h"

// The columns whose values a stream masks or drops at its capture, and those of which it once did, for as long as WAL
// from then is kept: nobody is shown their values, whatever the tables and the columns are called now. Columns are told
// by their numbers, which a new name does not change.

namespace thalweg::capture {

// By pg_class.oid and attnum.
using ColumnId = std::pair<uint32_t, int16_t>;

// Columns of a table that the steps mask or drop, by their places. A step whose column is not there hides nothing.
std::vector<bool> hidden_columns(const transform::Steps& steps, std::span<const std::string> columns);

// Owner: one thread.
class MaskedColumns {
 public:
  using Transformations = std::map<TableKey, transform::Steps>;

  // The columns in `file`; none without one. A file_error: it cannot be read.
  static base::Result<MaskedColumns> load(const std::filesystem::path& file);
  base::Result<void> save(const std::filesystem::path& file) const;
  // Adds what the stream masks now. Columns that it masked before and masks no more end here, unless its steps name
  // columns that the source does not have: then nobody knows which one they mean. Ends before `needed_from` are
  // forgotten.
  base::Result<void> note(pg::Connection& source, const Transformations& transformations, base::Lsn needed_from);

  // Whether a value of the WAL at `lsn` must not be shown.
  bool is_masked(ColumnId column, base::Lsn lsn) const {
    const auto found = until_.find(column);
    return found != until_.end() && lsn < found->second;
  }

 private:
  std::map<ColumnId, base::Lsn> until_;
};

}  // namespace thalweg::capture
