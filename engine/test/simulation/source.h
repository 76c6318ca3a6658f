#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/destination.h"
#include "simulation/history.h"
#include "simulation/locks.h"
#include "simulation/rules.h"
#include "simulation/server.h"
#include "simulation/transformations.h"
#include "simulation/wal.h"

// The source: transactions that write to its tables at the same time, its WAL, and a logical slot with a walsender.

namespace thalweg::simulation {

struct SourceOptions {
  size_t transactions = 60;
  int64_t keys = 20;              // a table's rows have keys below
  uint32_t hot_once_in = 2;       // changes go to the first two keys
  size_t changes_max = 6;         // of most transactions,
  size_t large_changes_max = 60;  // and of the few large ones
  uint32_t large_once_in = 12;
  Time pause_max = 40 * kMillisecond;  // between two steps of the clients
  size_t decoding_buffered_max = 30;   // changes; more of them are streamed
  size_t seed_rows = 10;               // that are there before the stream begins
  uint32_t long_once_in = 4;           // texts are long,
  size_t long_bytes_max = 3000;        // up to so many bytes
  size_t batch_bytes = 0;              // of thalweg_output's batches; 0: the slot is pgoutput's
  int batch_version_max = 2;           // that thalweg_output knows; from 2 on it says which subtransactions committed
  uint32_t forgets_once_in = 0;        // subtransactions that are rolled back are not told of; 0: never
  // By table. Tables without a key have REPLICA IDENTITY FULL in any case.
  std::vector<bool> full_identity = std::vector<bool>(shapes().size());
  Transformations transformations = Transformations(shapes().size());
  std::vector<std::optional<TableRules>> rules = std::vector<std::optional<TableRules>>(shapes().size());
};

class Source final : public Server {
 public:
  Source(Scheduler& scheduler, Network& network, SourceOptions options);

  // The rows that both sides have in the beginning, as the source's first transaction; replicated like all others.
  uint64_t slot_start() const { return kBegin; }
  // The clients' work, on a fiber of `process`.
  void run_clients(Process& process);
  bool clients_done() const { return done_; }
  // The commits as the destinations get them.
  const History& history() const { return history_; }
  // Updates that are inserts or deletes there.
  uint64_t migrations() const { return migrations_; }
  uint64_t wal_end() const { return wal_end_; }
  // The destination with whose durable state the slot's position is compared; without one there is no check. A change
  // that the slot has passed never comes again: a consumer that has it neither on disk nor at its destination will lack
  // it.
  void check_feedback_against(const Destination& destination) { destination_ = &destination; }
  uint64_t confirmed() const { return confirmed_; }

 private:
  friend class SourceSession;
  friend class Client;
  static constexpr uint64_t kBegin = 0x1000000;

  struct OpenTransaction {
    uint32_t xid = 0;
    std::vector<uint32_t> subxids;  // the stack of open subtransactions, the top level first
    struct Done {
      uint32_t subxid;
      Change change;
      Table table_before;  // of a TRUNCATE
    };
    std::vector<Done> done;
    size_t changes_left = 0;
  };

  std::unique_ptr<Session> make_session(std::shared_ptr<Channel> channel) override;
  void crashed() override;

  void step(std::vector<OpenTransaction>& open);
  bool make_change(OpenTransaction& open);
  bool try_change(OpenTransaction& open, std::vector<Change> changes);
  bool lock_for(uint32_t xid, const Change& change);
  std::string random_text(size_t size);
  std::string random_secret();
  Row random_row(const TableShape& shape, const Row& before);
  Change random_change();
  void undo(OpenTransaction& open, uint32_t subxid);
  void end(OpenTransaction& open, bool commits);
  std::optional<Change> passed(const Change& change) const;
  uint64_t write(WalRecord record);
  uint64_t emit_message(const std::string& prefix, const std::string& content);
  void check_feedback(uint64_t flushed);
  // For its catalogue: what has become of a transaction, or of a subtransaction, in PostgreSQL's words; and whether
  // somebody keeps all others from a table.
  std::string fate_of(uint32_t xid) const;
  bool is_table_locked(const std::string& oid);

  const SourceOptions options_;
  const Destination* destination_ = nullptr;
  Data data_ = empty_data();  // with what is not committed
  Locks locks_;
  std::vector<WalRecord> wal_;
  uint64_t wal_end_ = kBegin;
  uint32_t next_xid_ = 700;
  int64_t next_value_ = 1;
  size_t begun_ = 0;
  bool done_ = false;
  bool aborted_by_crash_ = false;
  History history_;
  uint64_t migrations_ = 0;
  // The slot. Saved data comes back after a crash.
  uint64_t confirmed_ = kBegin;
  uint64_t saved_confirmed_ = kBegin;
  int active_pid_ = 0;
  std::string holder_;
};

}  // namespace thalweg::simulation
