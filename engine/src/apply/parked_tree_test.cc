#include "apply/parked_tree.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apply/apply_harness.h"
#include "apply/error_queue.h"

namespace thalweg::apply {
namespace {

using base::ErrorCode;
using telemetry::TreePart;

// ParkedSet orders the queue.
TEST(ParkedTree, SharesWhatTheQueueSaysIsShared) {
  std::mt19937 random(7);
  const auto some = [&](size_t most) {
    std::vector<uint64_t> hashes(random() % (most + 1));
    for (uint64_t& hash : hashes) hash = random() % 12;
    return hashes;
  };
  int shared = 0;
  for (int round = 0; round < 3000; ++round) {
    ParkedSet set;
    FirstParked first;
    for (size_t place = 0; place < 4; ++place) {
      const bool whole = random() % 4 == 0;
      const auto writes = some(whole ? 0 : 2), reads = some(whole ? 0 : 1);
      const auto touched = some(1), parents = some(1), referenced = some(1);
      if (touched.empty()) continue;
      const TransactionHashes hashes{.writes = writes,
                                     .reads = reads,
                                     .tables = {.touched = touched, .parents = parents, .referenced = referenced}};
      std::set<size_t> places;
      first.find(hashes, places);
      EXPECT_EQ(!places.empty(), set.shares(hashes)) << "round " << round;
      shared += places.empty() ? 0 : 1;
      set.add(hashes);
      first.add(hashes, place);
    }
  }
  EXPECT_GT(shared, 300);
}

std::string tree_of(ApplyHarness& h, int64_t id, const TreePart& part = {}) {
  const auto tree = read_parked_tree(h.connection(), "teststream", id, part);
  EXPECT_TRUE(tree) << tree.error().message;
  std::string text = fmt::format("{} behind {}:", tree->total, tree->behind);
  for (const auto& dependant : tree->dependants) {
    text += fmt::format(" {}<{} {}", dependant.transaction.id, dependant.parent, dependant.behind);
    EXPECT_EQ(dependant.transaction.code, "parked_behind");
  }
  return text;
}

// 1 and 2 fail; 3 waits behind both, 4 behind 2, 5 behind 4 and so behind 2, 6 behind 3 only.
void park_six(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.parameters.parallelism = 1;  // they are parked one after the other
  h.run("CREATE TABLE items (id int PRIMARY KEY, n int)");
  h.describe("items");
  const std::vector<std::vector<int>> rows{{1}, {2, 20}, {1, 2, 3}, {20, 4}, {4, 5}, {3}};
  for (const auto& of_one : rows) {
    h.begin();
    for (const int row : of_one) h.update("items", {row, 0});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  ASSERT_EQ(h.select("SELECT string_agg(id || ' ' || code, ',' ORDER BY commit_lsn) FROM thalweg.error_queue"),
            "1 apply_conflict,2 apply_conflict,3 parked_behind,4 parked_behind,5 parked_behind,6 parked_behind");
}

TEST(ParkedTree, EachStandsBehindTheFirstThatItSharesARowWith) {
  ApplyHarness h;
  park_six(h);
  EXPECT_EQ(tree_of(h, 1), "2 behind []: 3<1 [1, 2] 6<3 [3]");
  EXPECT_EQ(tree_of(h, 2), "4 behind []: 3<2 [1, 2] 4<2 [2] 5<4 [4] 6<3 [3]");
  EXPECT_EQ(tree_of(h, 3), "1 behind [1, 2]: 6<3 [3]");
  EXPECT_EQ(tree_of(h, 6), "0 behind [3]:");
  const auto none = read_parked_tree(h.connection(), "teststream", 99);
  EXPECT_EQ(none.error().code, ErrorCode::unknown_error_transaction);
  EXPECT_FALSE(read_parked_tree(h.connection(), "another", 1));
  // It follows from the queue as it is.
  ASSERT_TRUE(remove_parked(h.connection(), "teststream", 3));
  EXPECT_EQ(tree_of(h, 1), "0 behind []:");
}

TEST(ParkedTree, ComesInParts) {
  ApplyHarness h;
  park_six(h);
  const auto first = read_parked_tree(h.connection(), "teststream", 2, {.limit = 3});
  ASSERT_TRUE(first && first->next_after);
  EXPECT_EQ(tree_of(h, 2, {.limit = 3}), "4 behind []: 3<2 [1, 2] 4<2 [2] 5<4 [4]");
  EXPECT_EQ(tree_of(h, 2, {.after = *first->next_after, .limit = 3}), "4 behind []: 6<3 [3]");
  EXPECT_FALSE(read_parked_tree(h.connection(), "teststream", 2, {.limit = 4})->next_after);
}

}  // namespace
}  // namespace thalweg::apply
