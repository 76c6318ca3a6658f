#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>

// The rows and tables that parked transactions have touched: later transactions that touch them must wait.

namespace thalweg::apply {

// The tables of one transaction, as hashes (transaction.h).
struct TableHashes {
  std::span<const uint64_t> touched;
  std::span<const uint64_t> parents;     // foreign keys of those point at these
  std::span<const uint64_t> referenced;  // of those touched: where keys that foreign keys point at came or went
};

// The hashes of one transaction (transaction.h). No row hashes at all (spilled, TRUNCATE): it stands for whole tables.
struct TransactionHashes {
  std::span<const uint64_t> writes;
  std::span<const uint64_t> reads;
  TableHashes tables;
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
    all_.add(parked.tables);
    if (!parked.of_rows()) whole_.add(parked.tables);
  }
  // Whether `later` writes what a parked one needs, or needs what a parked one writes. Rows are compared with rows;
  // where one of the two stands for whole tables, tables are, and the parents of rows with the tables of their parents.
  bool shares(const TransactionHashes& later) const {
    if (empty()) return false;
    if (!later.of_rows()) return all_.share(later.tables);
    return any(writes_, later.writes) || any(writes_, later.reads) || any(reads_, later.writes) ||
           whole_.share(later.tables);
  }
  bool empty() const { return all_.touched.empty(); }

 private:
  using Hashes = std::unordered_set<uint64_t>;
  static bool any(const Hashes& set, std::span<const uint64_t> hashes) {
    if (set.empty()) return false;
    for (const uint64_t hash : hashes) {
      if (set.contains(hash)) return true;
    }
    return false;
  }
  struct Tables {
    Hashes touched, parents, referenced;
    void add(const TableHashes& tables) {
      touched.insert(tables.touched.begin(), tables.touched.end());
      parents.insert(tables.parents.begin(), tables.parents.end());
      referenced.insert(tables.referenced.begin(), tables.referenced.end());
    }
    // Siblings, whose parents are the same, share nothing.
    bool share(const TableHashes& tables) const {
      return any(touched, tables.touched) || any(referenced, tables.parents) || any(parents, tables.referenced);
    }
  };
  Hashes writes_;
  Hashes reads_;
  Tables all_;
  Tables whole_;  // of those that stand for whole tables
};

}  // namespace thalweg::apply
