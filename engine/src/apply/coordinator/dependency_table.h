#pragma once

#include <cstdint>
#include <vector>

#include "apply/transaction.h"

// The last group that touched each key.

namespace thalweg::apply {

// The groups that a transaction has to wait for.
struct Dependencies {
  uint64_t after = 0;                  // all groups up to this one
  std::vector<uint64_t> predecessors;  // and these, distinct
  // Why these predecessors: both sides write these keys (not distinct), or they share something else, too.
  std::vector<uint64_t> contested;
  bool waits_whole = false;
  bool none() const { return after == 0 && predecessors.empty(); }
};

// A hash map with open addressing. Entries of committed groups are dead; they go when the table is built anew.
// Owner: the coordinator.
class DependencyTable {
 public:
  DependencyTable();
  // Adds to `found` what `hashes` depend on among groups above `committed_through`, `own` excepted.
  void find(const TransactionHashes& hashes, uint64_t committed_through, uint64_t own, Dependencies& found) const;
  // Notes that group `own` is the last one that touched these rows.
  void note(const TransactionHashes& hashes, uint64_t committed_through, uint64_t own);
  size_t slots() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash = 0;
    uint64_t writer = 0;
    uint64_t reader = 0;  // the last of those that needed the key; earlier ones are waited for with it
    bool used() const { return writer != 0 || reader != 0; }
  };
  const Entry* look_up(uint64_t hash) const;
  Entry& slot_for(uint64_t hash);
  void rebuild(uint64_t committed_through, size_t more);

  std::vector<Entry> entries_;
  size_t used_ = 0;
};

}  // namespace thalweg::apply
