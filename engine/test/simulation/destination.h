#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/history.h"
#include "simulation/locks.h"
#include "simulation/server.h"

// The destination: a database that knows exactly the statements that apply sends, in transactions with row locks, with
// asynchronous commits that a crash may lose from the end. Every commit is checked against the source's history.

namespace thalweg::simulation {

struct StreamRow {
  int64_t epoch = 0;
  base::Lsn low_watermark;
};
struct ProgressRow {
  int64_t epoch = 0;
  base::Lsn low_watermark;
  std::string ranges;
};

// A transaction in the error queue: what apply wrote about it.
struct ParkedRow {
  base::Lsn commit_lsn;
  std::vector<std::string> columns;  // from commit_lsn on, as in thalweg.error_queue
  std::map<int64_t, std::string> chunks;
};

// Everything that a commit makes visible, and what it should be.
struct DestinationState {
  Data data = empty_data();
  std::optional<StreamRow> stream;
  std::map<int64_t, ProgressRow> progress;
  std::map<int64_t, ParkedRow> error_queue;  // by id
  std::vector<LoggedConflict> logged;        // in the conflict log by this commit
  uint64_t conflicts = 0;                    // in it by all of them
  Expected expected;
};

class Destination final : public Server {
 public:
  // `conflicts`: what is done about them; null where nobody else writes.
  Destination(Scheduler& scheduler, Network& network, std::string name, const History& history, Order order,
              bool has_data_layer, const ConflictRules* conflicts);

  // The stream is registered and the tables are those of `initial`.
  void register_stream(base::Lsn start);

  const DestinationState& committed() const { return log_.back(); }
  // The state that no crash takes away any more.
  const DestinationState& durable() const { return log_.front(); }
  bool has_data_layer() const { return has_data_layer_; }
  // Somebody keeps rows locked for a while: an operator's session.
  void lock_rows_for_a_while();
  // Nobody writes to any table until the other is called; a crash lets them go.
  void lock_tables();
  void unlock_tables();
  // Somebody's CHECK constraint: about one row in so many is refused; 0: none any more.
  void refuse_rows(uint32_t once_in) { refused_once_in_ = once_in; }
  // Somebody else changes rows, unless others have locked them; returns how many.
  size_t write_as_other(size_t changes, int64_t keys);
  // Half of the commits take seconds.
  void make_commits_slow(bool slow) { slow_ = slow; }
  // As after an ALTER TABLE that changes nothing that matters: what is known of the tables has to be loaded again.
  void alter_tables();

  // --- for its sessions
  DestinationState& working() { return working_; }
  Locks& locks() { return locks_; }
  int64_t table_version(size_t table) const { return table_versions_[table]; }
  bool refuses(int table, const Row& row) const;
  int64_t next_error_id() { return ++error_ids_; }
  bool commits_slowly() const { return slow_; }
  // The transaction's changes become visible to all; returns after they are on disk where `synchronous`.
  void commit(const std::vector<std::function<void(DestinationState&)>>& changes, bool synchronous);

 private:
  std::unique_ptr<Session> make_session(std::shared_ptr<Channel> channel) override;
  void began() override;
  void crashed() override;
  void check(DestinationState& state);
  Change other_change(int64_t keys);
  bool lock_for_other(const Change& change);
  void flush(uint64_t up_to);

  const History& history_;
  const Order order_;
  const bool has_data_layer_;
  const ConflictRules* const conflicts_;
  DestinationState working_;                               // with what is not committed
  std::vector<DestinationState> log_{DestinationState{}};  // committed states, from the last one that is on disk
  uint64_t flushed_ = 0;                                   // number of log_.front()
  Locks locks_;
  uint32_t refused_once_in_ = 0;
  bool slow_ = false;
  int64_t error_ids_ = 0;
  std::vector<int64_t> table_versions_ = std::vector<int64_t>(shapes().size(), 1);
};

}  // namespace thalweg::simulation
