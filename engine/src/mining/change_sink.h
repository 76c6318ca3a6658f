#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "lcr/frame.h"
#include "mining/mined_table.h"

// Changes that are built: transactions in the order of their commits, and pieces of those that are too large to be
// kept.

namespace thalweg::mining {

struct TruncateChange {
  uint16_t flags = 0;  // lcr::kCascade, lcr::kRestartIdentity, lcr::kStreamed
  base::Xid xid = {};
  base::Xid subxid = {};
  base::Lsn lsn = {};
  std::span<const base::RelationId> relations = {};
};

// Owner: the builder's thread. A failure of any call ends the building with it.
class ChangeSink {
 public:
  virtual ~ChangeSink() = default;
  // A transaction that comes whole follows, up to its commit.
  virtual base::Result<void> begin(base::Xid xid, const lcr::TransactionMark& mark) = 0;
  // Before the first row of a table, and before the first one that another description fits. Version 0.
  virtual base::Result<void> describe(const MinedTable& table) = 0;
  // With kStreamed, the row is of a transaction that has not ended, and `subxid` is set where a subtransaction made it.
  virtual base::Result<void> change(const lcr::RowFrame& row) = 0;
  virtual base::Result<void> truncate(const TruncateChange& truncate) = 0;
  // A logical message of the prefix that is wanted, of the transaction that comes whole.
  virtual base::Result<void> message(base::Xid xid, std::string_view content) = 0;
  // Of a streamed transaction: this subtransaction was rolled back; all of it, where `subxid` is none.
  virtual base::Result<void> rolled_back(base::Xid xid, base::Xid subxid, base::Lsn lsn) = 0;
  virtual base::Result<void> commit(base::Xid xid, const lcr::TransactionMark& mark) = 0;
  // Of a streamed transaction; `subtransactions`: all that committed with it.
  virtual base::Result<void> commit_streamed(base::Xid xid, const lcr::TransactionMark& mark,
                                             std::span<const base::Xid> subtransactions) = 0;

 protected:
  ChangeSink() = default;
  ChangeSink(const ChangeSink&) = default;
  ChangeSink& operator=(const ChangeSink&) = default;
};

}  // namespace thalweg::mining
