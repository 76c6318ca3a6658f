#include "apply/coordinator/dependency_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace thalweg::apply {
namespace {

Dependencies find(const DependencyTable& table, std::vector<uint64_t> writes, std::vector<uint64_t> reads,
                  uint64_t committed, uint64_t own) {
  Dependencies found;
  table.find({.writes = writes, .reads = reads, .tables = {}}, committed, own, found);
  return found;
}

void note(DependencyTable& table, std::vector<uint64_t> writes, std::vector<uint64_t> reads, uint64_t committed,
          uint64_t own) {
  table.note({.writes = writes, .reads = reads, .tables = {}}, committed, own);
}

TEST(DependencyTable, OrdersWritersAndReaders) {
  DependencyTable table;
  note(table, {1, 2}, {9}, 0, 1);
  EXPECT_TRUE(find(table, {3}, {8}, 0, 2).none());
  EXPECT_EQ(find(table, {2}, {}, 0, 2).predecessors, std::vector<uint64_t>{1});
  EXPECT_EQ(find(table, {}, {1}, 0, 2).predecessors, std::vector<uint64_t>{1});
  EXPECT_TRUE(find(table, {}, {9}, 0, 2).none());   // readers do not wait for readers
  EXPECT_EQ(find(table, {9}, {}, 0, 2).after, 1U);  // writers wait for all readers
  EXPECT_TRUE(find(table, {2}, {}, 1, 2).none());   // committed
  EXPECT_TRUE(find(table, {2}, {}, 0, 1).none());   // its own
}

TEST(DependencyTable, AGroupThatReadTooWaitsForEarlierReaders) {
  DependencyTable table;
  note(table, {}, {5}, 0, 1);
  note(table, {}, {5}, 0, 2);
  EXPECT_EQ(find(table, {5}, {}, 0, 2).after, 1U);
}

// Two groups of which one writes a key that the other touches keep their order, whatever order the table allows.
TEST(DependencyTable, NeverForgetsAgainstAModel) {
  std::mt19937_64 random(3);
  DependencyTable table;
  std::map<uint64_t, std::vector<std::pair<uint64_t, bool>>> touched;  // hash: (group, wrote)
  uint64_t committed = 0;
  for (uint64_t own = 1; own <= 5000; ++own) {
    std::vector<uint64_t> writes, reads;
    for (int i = 0; i < 5; ++i) writes.push_back(random() % 3000 + 1);
    for (int i = 0; i < 3; ++i) reads.push_back(random() % 3000 + 1);
    const auto found = find(table, writes, reads, committed, own);
    const auto ordered = [&](uint64_t earlier) {
      return earlier <= committed || earlier <= found.after ||
             std::ranges::find(found.predecessors, earlier) != found.predecessors.end();
    };
    for (const uint64_t hash : writes) {
      // The last writer, and every reader since: earlier ones are before that writer.
      const auto& all = touched[hash];
      for (auto at = all.rbegin(); at != all.rend(); ++at) {
        ASSERT_TRUE(ordered(at->first)) << hash;
        if (at->second) break;
      }
    }
    for (const uint64_t hash : reads) {
      for (auto at = touched[hash].rbegin(); at != touched[hash].rend(); ++at) {
        if (!at->second) continue;
        ASSERT_TRUE(ordered(at->first));
        break;
      }
    }
    note(table, writes, reads, committed, own);
    for (const uint64_t hash : reads) touched[hash].push_back({own, false});
    for (const uint64_t hash : writes) touched[hash].push_back({own, true});
    if (own > 40 && random() % 2 == 0) committed = std::max(committed, own - 20 - random() % 20);
  }
  EXPECT_LE(table.slots(), 8192U);  // dead entries go
}

}  // namespace
}  // namespace thalweg::apply
