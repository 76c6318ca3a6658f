#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>

// What parked transactions have touched: later ones that touch the same must wait behind them.

namespace thalweg::apply {

// Owner: one thread.
class ParkedSet {
 public:
  // A transaction without row hashes (spilled, TRUNCATE) stands for whole tables.
  void add(std::span<const uint64_t> row_hashes, std::span<const uint64_t> table_hashes) {
    rows_.insert(row_hashes.begin(), row_hashes.end());
    tables_.insert(table_hashes.begin(), table_hashes.end());
    if (row_hashes.empty()) whole_tables_.insert(table_hashes.begin(), table_hashes.end());
  }
  bool shares(std::span<const uint64_t> row_hashes, std::span<const uint64_t> table_hashes) const {
    if (tables_.empty() && rows_.empty()) return false;
    const auto any = [](const std::unordered_set<uint64_t>& set, std::span<const uint64_t> hashes) {
      for (const uint64_t hash : hashes) {
        if (set.contains(hash)) return true;
      }
      return false;
    };
    if (row_hashes.empty()) return any(tables_, table_hashes);
    return any(rows_, row_hashes) || any(whole_tables_, table_hashes);
  }
  bool empty() const { return tables_.empty() && rows_.empty(); }

 private:
  std::unordered_set<uint64_t> rows_;
  std::unordered_set<uint64_t> tables_;
  std::unordered_set<uint64_t> whole_tables_;
};

}  // namespace thalweg::apply
