#pragma once

#include <string>

#include "base/error.h"
#include "base/ids.h"

// Internal to wal/.

namespace thalweg::wal {

// The error of bytes at `lsn` that are no WAL of the source.
inline std::unexpected<base::Error> violation(base::Lsn lsn, std::string message, base::Xid xid = {}) {
  return std::unexpected(base::Error{.code = base::ErrorCode::protocol_violation,
                                     .message = std::move(message),
                                     .sqlstate = {},
                                     .table = {},
                                     .lsn = lsn,
                                     .xid = xid});
}

}  // namespace thalweg::wal
