#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "apply/apply.h"
#include "apply/apply_harness.h"

// The reader's work passes between its own thread and the one that fills the queue.

namespace thalweg::apply {
namespace {

constexpr const char* kTables = "CREATE TABLE last (id int PRIMARY KEY, n int); CREATE TABLE item (id int PRIMARY KEY)";

TEST(ReaderTurns, TransactionsPassFromOneToTheOtherInTheirMidst) {
  ApplyHarness h;
  h.run(kTables);
  h.run("INSERT INTO last VALUES (1, 0)");
  h.parameters.txn_lcr_spill_threshold = 150;
  h.describe("last");
  h.describe("item");
  constexpr int kTransactions = 120;
  int items = 0;
  uint64_t lcrs = 0;
  for (int n = 1; n <= kTransactions; ++n) {
    // A description is the agent's, and what is larger than a moment's work, and what goes to disk.
    if (n % 10 == 0) h.describe("item");
    const int rows = n % 40 == 0 ? 200 : n % 15 == 0 ? 130 : n % 3;
    h.begin();
    for (int i = 0; i < rows; ++i) h.insert("item", {items++});
    h.update("last", {1, n});
    h.commit();
    lcrs += static_cast<uint64_t>(rows) + 1;
    if (n % 7 == 0) h.progress();
  }
  ASSERT_TRUE(h.start());
  // One frame at a time: each flush may have the agent woken, or not.
  for (size_t i = 0; i < h.history_size(); ++i) h.feed(1);
  EXPECT_FALSE(h.finish());
  EXPECT_EQ(h.select("SELECT n FROM last"), std::to_string(kTransactions));
  EXPECT_EQ(h.select("SELECT count(*), max(id) FROM item"), std::to_string(items) + "|" + std::to_string(items - 1));
  EXPECT_EQ(h.counter("APPLY READER", "lcrs"), lcrs);
  EXPECT_EQ(h.counter("APPLY READER", "transactions"), static_cast<uint64_t>(kTransactions));
  EXPECT_EQ(h.counter("APPLY READER", "spilled_transactions"), 3U);
}

TEST(ReaderTurns, WhoFillsTheQueueTakesASmallTransactionWithoutTheAgent) {
  ApplyHarness h;
  h.run(kTables);
  h.describe("item");
  ASSERT_TRUE(h.start());
  h.feed();
  int taken = 0;
  // Now and then the agent is about to look by itself.
  for (int i = 0; i < 500 && taken < 20; ++i) {
    const base::Lsn lsn = h.insert_one("item", {i});
    h.feed();
    taken += h.queued() == 0 ? 1 : 0;
    ASSERT_TRUE(h.wait_until_applied(lsn));
  }
  EXPECT_EQ(taken, 20);
  EXPECT_FALSE(h.finish());
}

TEST(ReaderTurns, WhatFailsInSomebodyElsesTurnEndsTheApply) {
  ApplyHarness h;
  h.run(kTables);
  h.describe("item");
  const base::Lsn good = h.insert_one("item", {1});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(good));
  h.begin();
  h.begin();  // within a transaction
  const auto error = h.finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, base::ErrorCode::corrupt_frame);
  EXPECT_EQ(h.select("SELECT id FROM item"), "1");
}

}  // namespace
}  // namespace thalweg::apply
