#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apply/ranges.h"
#include "simulation/conflicts.h"
#include "simulation/relational.h"

// The transactions that the source has committed, and the states that a correct destination may have.

namespace thalweg::simulation {

struct SourceTransaction {
  uint64_t commit_lsn = 0;
  uint64_t end_lsn = 0;
  uint32_t xid = 0;
  std::vector<Change> changes;  // in their order, without what subtransactions rolled back
  // Transactions (by index) that must be at the destination before this one: they touched the same rows, or are
  // the parent's; all before a TRUNCATE, and the TRUNCATE before all after it.
  std::vector<size_t> after;
  // Those of them that it cannot do without: while one is parked, so is this one. A TRUNCATE matters to its own tables.
  std::vector<size_t> needs;
};

class History {
 public:
  void commit(SourceTransaction transaction);
  const std::vector<SourceTransaction>& transactions() const { return transactions_; }
  const Data& final_state() const { return final_; }

 private:
  void add_dependencies(SourceTransaction& transaction);

  struct LastTouch {
    int64_t writer = -1;
    std::vector<size_t> readers;  // since then
  };
  std::vector<SourceTransaction> transactions_;
  std::map<std::string, LastTouch> touched_;
  std::vector<std::set<int>> tables_;  // that each transaction touched
  std::vector<int64_t> truncated_ = std::vector<int64_t>(shapes().size(), -1);
  Data final_ = empty_data();
};

enum class Order : uint8_t { full, dependent };

// The content that the destination must have, according to its own rows of progress: a set of source transactions, each
// of them applied or in the error queue, and the data that the applied ones make. Part of every committed state of the
// destination, so that it goes back with it after a crash.
class Expected {
 public:
  // Progress, parked transactions and the conflict log, as the destination has them.
  struct Claim {
    base::Lsn low_watermark;
    apply::LsnRanges ranges;
    std::set<uint64_t> parked;           // by commit LSN
    std::vector<LoggedConflict> logged;  // since the last time
  };
  // Empty: as it should be; else what is wrong with it. `conflicts`: null where nobody else writes.
  std::string advance(const History& history, Order order, const ConflictRules* conflicts, const Claim& claim);
  // Whether the oldest transaction of the error queue cannot be executed as it is: others' rows are in its way.
  bool is_stuck(const History& history) const;
  // Somebody else's change, which is possible.
  void take_other(const Change& change) { apply_change(data_, change); }
  const Data& data() const { return data_; }
  size_t count() const { return count_; }
  bool has(size_t index) const { return index < prefix_ || (index < applied_.size() && applied_[index]); }
  // Applied or parked.
  bool keeps(size_t index) const { return index < kept_prefix_ || (index < kept_.size() && kept_[index]); }
  // Every transaction below is applied.
  size_t prefix() const { return prefix_; }
  // Every transaction below is applied or parked.
  size_t kept_prefix() const { return kept_prefix_; }

 private:
  std::string check_order(const History& history, Order order, size_t index) const;
  std::string apply_fresh(const History& history, const std::vector<size_t>& fresh);
  // `came`: those that were not in the error queue.
  std::string apply_fresh(const History& history, const std::vector<size_t>& fresh, const std::vector<size_t>& came,
                          const ConflictRules& conflicts, const std::vector<LoggedConflict>& logged);

  std::vector<bool> applied_;
  std::vector<bool> kept_;
  size_t prefix_ = 0;
  size_t kept_prefix_ = 0;
  size_t count_ = 0;
  Data data_ = empty_data();
};

}  // namespace thalweg::simulation
