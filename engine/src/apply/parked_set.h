#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>

// What parked transactions have touched: later ones that touch the same must wait behind them.

namespace thalweg::apply {

// The hashes of one transaction (transaction.h). No row hashes at all (spilled, TRUNCATE): it stands for whole tables.
struct TransactionHashes {
  std::span<const uint64_t> writes;
  std::span<const uint64_t> reads;
  std::span<const uint64_t> tables;
  // Keys that may be the same although their hashes' rows are not (transaction.h): they order, they do not park.
  std::span<const uint64_t> possible_writes = {};
  bool of_rows() const { return !writes.empty() || !reads.empty(); }
};

// Owner: one thread.
class ParkedSet {
 public:
  void add(const TransactionHashes& parked) {
    writes_.insert(parked.writes.begin(), parked.writes.end());
    reads_.insert(parked.reads.begin(), parked.reads.end());
    tables_.insert(parked.tables.begin(), parked.tables.end());
    if (!parked.of_rows()) whole_tables_.insert(parked.tables.begin(), parked.tables.end());
  }
  // Whether `later` writes what a parked one needs, or needs what a parked one writes.
  bool shares(const TransactionHashes& later) const {
    if (tables_.empty()) return false;
    if (!later.of_rows()) return any(tables_, later.tables);
    return any(writes_, later.writes) || any(writes_, later.reads) || any(reads_, later.writes) ||
           any(whole_tables_, later.tables);
  }
  bool empty() const { return tables_.empty(); }

 private:
  using Hashes = std::unordered_set<uint64_t>;
  static bool any(const Hashes& set, std::span<const uint64_t> hashes) {
    if (set.empty()) return false;
    for (const uint64_t hash : hashes) {
      if (set.contains(hash)) return true;
    }
    return false;
  }
  Hashes writes_;
  Hashes reads_;
  Hashes tables_;
  Hashes whole_tables_;
};

}  // namespace thalweg::apply
