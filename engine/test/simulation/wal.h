#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulation/relational.h"

namespace thalweg::simulation {

// A record of the source's WAL.
struct WalRecord {
  enum class Kind : uint8_t { change, message, commit, abort, abort_subtransaction };
  Kind kind;
  uint64_t lsn;
  uint64_t end;
  uint32_t xid;                 // top level
  uint32_t subxid;              // of the subtransaction; the same as xid at top level
  std::vector<Change> changes;  // one, or the tables of a TRUNCATE
  int64_t commit_time = 0;      // microseconds since 2000, as PostgreSQL counts
  std::string prefix = {};      // of a logical message
  std::string content = {};
};

// What it makes of its log: pgoutput's messages, protocol version 2. Buffers transactions until their commit, or
// streams the largest one in pieces when there is too much.
class LogicalDecoding {
 public:
  // Transactions that commit before `start` are not sent. `buffered_max`: changes. `send(lsn, payload)`.
  template <typename Send>
  LogicalDecoding(uint64_t start, size_t buffered_max, Send send)
      : start_(start), buffered_max_(buffered_max), send_(std::move(send)) {}

  void decode(const WalRecord& record);
  // As after an invalidation of its caches: tables are described again.
  void forget_tables() { described_.clear(); }

 private:
  struct Open {
    uint32_t xid = 0;
    std::vector<WalRecord> changes;  // that were not streamed
    bool streamed = false;
    std::vector<uint32_t> streamed_subxids;  // of which something was streamed
    std::vector<int> described;              // tables, in this streamed transaction
  };
  Open& find(uint32_t xid);
  void erase(uint32_t xid);
  void change(const WalRecord& record);
  void stream(Open& open);
  void commit(const WalRecord& record);
  void abort(const WalRecord& record);
  void put_change(const WalRecord& record, uint32_t stream_xid, std::vector<int>& described);
  void put_relation(int table, uint32_t stream_xid, std::vector<int>& described);

  const uint64_t start_;
  const size_t buffered_max_;
  const std::function<void(uint64_t lsn, const std::string& payload)> send_;
  std::vector<Open> open_;
  std::vector<int> described_;  // tables, outside of streams
};

}  // namespace thalweg::simulation
