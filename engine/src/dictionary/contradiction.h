#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "dictionary/catalog_file.h"
#include "wal/wal_record.h"

// Internal to dictionary/.

namespace thalweg::dictionary {

// The error of a record that does not go with what the dictionary has. Nothing is guessed behind it.
inline std::unexpected<base::Error> contradiction(const wal::WalRecord& record, Catalog catalog, Place place,
                                                  std::string_view what) {
  return std::unexpected(base::Error{
      .code = base::ErrorCode::protocol_violation,
      .message = fmt::format("The dictionary does not fit the source's WAL at {}: row ({},{}) of {} {}.",
                             to_string(record.begin), place.block, place.offset, description_of(catalog).name, what),
      .sqlstate = {},
      .table = {},
      .lsn = record.begin,
      .xid = record.xid});
}

}  // namespace thalweg::dictionary
