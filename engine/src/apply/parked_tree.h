#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "apply/parked_set.h"
#include "base/error.h"
#include "pg/connection.h"
#include "telemetry/parked_transaction.h"

// The parked transactions behind one, as a tree. Nothing of it is stored: it follows from the hashes that order the
// queue.

namespace thalweg::apply {

// For each row and table of parked transactions, the first of these. Finds a transaction wherever ParkedSet would say
// that something is shared. Owner: one thread.
class FirstParked {
 public:
  // `place`: rises from call to call.
  void add(const TransactionHashes& parked, size_t place);
  // Adds the places of those that `later` waits behind.
  void find(const TransactionHashes& later, std::set<size_t>& places) const;

 private:
  using Places = std::unordered_map<uint64_t, size_t>;  // by hash
  struct Tables {
    Places touched, parents, referenced;
    void add(const TableHashes& tables, size_t place);
    void find(const TableHashes& later, std::set<size_t>& places) const;
  };

  Places writes_, reads_;
  Tables all_;
  Tables whole_;  // of those that stand for whole tables
};

// Fails with unknown_error_transaction where the queue has no such transaction.
base::Result<telemetry::ParkedTree> read_parked_tree(pg::Connection& connection, std::string_view stream_id, int64_t id,
                                                     const telemetry::TreePart& part = {});

}  // namespace thalweg::apply
