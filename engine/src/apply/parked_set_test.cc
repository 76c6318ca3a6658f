#include "apply/parked_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace thalweg::apply {
namespace {

using Hashes = std::vector<uint64_t>;

constexpr uint64_t kParents = 1, kChildren = 2;  // tables

struct Touched {
  Hashes writes, reads, tables, parents, referenced;
  operator TransactionHashes() const {
    return {
        .writes = writes, .reads = reads, .tables = {.touched = tables, .parents = parents, .referenced = referenced}};
  }
};

Touched child(uint64_t row, uint64_t parent) { return {{row}, {parent}, {kChildren}, {kParents}, {}}; }
Touched new_parent(uint64_t row) { return {{row}, {}, {kParents}, {}, {kParents}}; }
Touched same_parent(uint64_t row) { return {{row + 1000}, {}, {kParents}, {}, {}}; }  // its key stays
const Touched kAllChildren{{}, {}, {kChildren}, {kParents}, {}};
const Touched kAllParents{{}, {}, {kParents}, {}, {kParents}};

bool waits(const Touched& later, const Touched& parked) {
  ParkedSet set;
  set.add(parked);
  return set.shares(later);
}

TEST(ParkedSet, RowsAreComparedWithRows) {
  EXPECT_TRUE(waits(child(11, 5), new_parent(5)));
  EXPECT_TRUE(waits(new_parent(5), child(11, 5)));
  EXPECT_FALSE(waits(child(11, 6), new_parent(5)));
  EXPECT_FALSE(waits(same_parent(5), child(11, 5)));
  EXPECT_FALSE(waits(child(12, 5), child(11, 5)));  // siblings
}

TEST(ParkedSet, WholeTablesWithTablesAndParents) {
  EXPECT_TRUE(waits(child(11, 5), kAllParents));
  EXPECT_TRUE(waits(new_parent(5), kAllChildren));
  EXPECT_TRUE(waits(kAllChildren, new_parent(5)));
  EXPECT_TRUE(waits(kAllParents, child(11, 5)));
  EXPECT_TRUE(waits(kAllChildren, child(11, 5)));
  EXPECT_FALSE(waits(same_parent(5), kAllChildren));
  EXPECT_FALSE(waits(kAllChildren, same_parent(5)));
}

}  // namespace
}  // namespace thalweg::apply
