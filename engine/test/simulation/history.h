#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apply/ranges.h"
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
  // The progress rows now say this, and these transactions (by commit LSN) are in the error queue. Empty: as it should
  // be; else what is wrong with it.
  std::string advance(const History& history, Order order, base::Lsn low_watermark, const apply::LsnRanges& ranges,
                      const std::set<uint64_t>& parked);
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

  std::vector<bool> applied_;
  std::vector<bool> kept_;
  size_t prefix_ = 0;
  size_t kept_prefix_ = 0;
  size_t count_ = 0;
  Data data_ = empty_data();
};

}  // namespace thalweg::simulation
