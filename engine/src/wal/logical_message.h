#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "wal/record_parts.h"
#include "wal/wal_record.h"

// The record that pg_logical_emit_message writes (xl_logical_message: src/include/replication/message.h).

namespace thalweg::wal {

struct LogicalMessage {
  uint32_t database = 0;
  bool is_transactional = false;  // of the record's transaction, which may be rolled back
  std::string_view prefix;        // these two point into the record's body
  std::string_view content;
};

// Nothing for a record of another kind, and a protocol_violation for one that is cut.
base::Result<std::optional<LogicalMessage>> parse_logical_message(const WalRecord& record, const RecordParts& parts);

}  // namespace thalweg::wal
