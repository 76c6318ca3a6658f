#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "wal/record_parts.h"
#include "wal/wal_format.h"
#include "wal/wal_record.h"

// Records of the transaction resource manager (src/include/access/xact.h; ParseCommitRecord of
// src/backend/access/rmgrdesc/xactdesc.c).

namespace thalweg::wal {

enum class TransactionOperation : uint8_t { none, commit, abort, prepare, assignment };

struct TransactionRecord {
  TransactionOperation operation = TransactionOperation::none;
  // Of a prepared transaction's end the prepared one; of an abort, also of a subtransaction; of an assignment the
  // top-level one.
  base::Xid xid;
  // Of a commit those that committed with it, of an abort those that fell with it; of an assignment those assigned.
  std::vector<base::Xid> subtransactions;
  // Of an end. A commit that was applied from elsewhere has the time that it had there.
  base::UnixMicros time;
};

// A protocol_violation: lengths or flags do not fit together.
base::Result<TransactionRecord> parse_transaction(const WalRecord& record, const RecordParts& parts,
                                                  const WalFormat& format);

}  // namespace thalweg::wal
