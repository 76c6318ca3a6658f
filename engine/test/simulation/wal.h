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

// The server's logical decoding of its WAL: pgoutput's messages, protocol version 2. Buffers transactions until their
// commit, or streams the largest one in pieces when there is too much. It may forget to report a subtransaction that
// was rolled back, as PostgreSQL does; thalweg_output then says which ones committed.
// Whether an update leaves the value of its table's toasted column out, which lies outside of the row and is as it was.
bool leaves_value_out(const Change& update);

class LogicalDecoding {
 public:
  struct Options {
    uint64_t start = 0;                  // transactions that commit before it are not sent
    size_t buffered_max = SIZE_MAX;      // changes; more of them are streamed
    bool lists_subtransactions = false;  // that committed, at the end of a streamed transaction
    std::vector<bool> full_identity = std::vector<bool>(shapes().size());  // tables that have REPLICA IDENTITY FULL
    std::function<bool()> forgets = [] { return false; };
  };
  // `send(lsn, payload)`.
  template <typename Send>
  LogicalDecoding(Options options, Send send) : options_(std::move(options)), send_(std::move(send)) {}

  void decode(const WalRecord& record);
  // As after an invalidation of its caches: tables are described again.
  void forget_tables() { described_.clear(); }

 private:
  struct Open {
    uint32_t xid = 0;
    std::vector<WalRecord> changes;  // that were not streamed
    bool streamed = false;
    std::vector<uint32_t> streamed_subxids;  // of which something was streamed, and that were not rolled back
    std::vector<int> described;              // tables, in this streamed transaction
  };
  Open& find(uint32_t xid);
  void erase(uint32_t xid);
  void change(const WalRecord& record);
  void stream(Open& open);
  void put_committed_subtransactions(const Open& open);
  void commit(const WalRecord& record);
  void abort(const WalRecord& record);
  void put_change(const WalRecord& record, uint32_t stream_xid, std::vector<int>& described);
  bool sends_whole_old_rows(int table) const;
  void put_relation(int table, uint32_t stream_xid, std::vector<int>& described);

  const Options options_;
  const std::function<void(uint64_t lsn, const std::string& payload)> send_;
  std::vector<Open> open_;
  std::vector<int> described_;  // tables, outside of streams
};

}  // namespace thalweg::simulation
