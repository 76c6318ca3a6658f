#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"

// A record of the WAL (XLogRecord: src/include/access/xlogrecord.h).

namespace thalweg::wal {

inline constexpr size_t kRecordHeaderBytes = 24;

// The resource managers of which records are read (src/include/access/rmgrlist.h). There are others.
enum class Rmgr : uint8_t {
  xlog = 0,
  transaction = 1,
  storage = 2,
  database = 4,
  relation_map = 7,
  standby = 8,
  heap2 = 9,
  heap = 10,
  logical_message = 21,
};

// Of a record's info, the bits that are its resource manager's; the others are the WAL's own (XLR_INFO_MASK).
inline constexpr uint8_t kRmgrInfo = 0xF0;

struct WalRecord {
  base::Lsn begin;     // of its first byte; it is known by it
  base::Lsn end;       // where the next record may begin: behind the padding, and behind what a switch leaves unused
  base::Lsn previous;  // the begin of the one before
  base::Xid xid;       // none: of no transaction
  Rmgr rmgr = Rmgr::xlog;
  uint8_t info = 0;
  std::span<const std::byte> body;  // without the header
};

}  // namespace thalweg::wal
