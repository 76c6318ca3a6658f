#include "apply/error_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "apply/apply_harness.h"

// What an operator does with the queue; how transactions get into it is in recovery_test.cc.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";

// One that waits behind another has a cause of its own, too: the queue tells it once the first is out of its way.
TEST(ErrorQueue, WhatFailsAnewTellsWhy) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (7, 'in the way', 0)");
  h.describe("items");
  h.begin();
  h.update("items", {5, "missing", 5});  // no such row
  h.insert("items", {6, "six", 6});
  h.commit();
  h.begin();
  h.update("items", {6, "six again", 66});
  h.insert("items", {7, "seven", 7});
  h.commit();
  h.begin();
  h.update("items", {7, "seven again", 77});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  const std::string causes = "SELECT code, sqlstate FROM thalweg.error_queue ORDER BY commit_lsn";
  EXPECT_EQ(h.select(causes), "apply_conflict|,parked_behind|,parked_behind|");
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  const auto first = std::stoll(h.select("SELECT min(id) FROM thalweg.error_queue"));
  auto opened = pg::Connection::open(h.conninfo(), {});
  ASSERT_TRUE(opened);
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  const auto executed =
      execute_parked(std::move(*opened), "teststream", first,
                     {.progress = [&](uint64_t done, uint64_t total) { steps.emplace_back(done, total); }});
  ASSERT_FALSE(executed);
  EXPECT_EQ(steps, (std::vector<std::pair<uint64_t, uint64_t>>{{0, 3}, {1, 3}}));
  EXPECT_EQ(h.select(causes), "apply_conflict|23505,parked_behind|");
  EXPECT_EQ(h.select("SELECT message LIKE '%\"id\" = 7%' FROM thalweg.error_queue ORDER BY commit_lsn LIMIT 1"), "t");
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 6"), "six") << "what went through stays";
  // The oldest waits for none, whatever it says.
  const auto counts = count_parked(h.connection(), "teststream");
  EXPECT_EQ(counts->total, 2U);
  EXPECT_EQ(counts->roots, 1U);
  const auto second = std::stoll(h.select("SELECT min(id) FROM thalweg.error_queue"));
  ASSERT_TRUE(remove_parked(h.connection(), "teststream", second));
  const auto roots = list_parked(h.connection(), "teststream", {.roots_only = true});
  ASSERT_EQ(roots->size(), 1U);
  EXPECT_EQ((*roots)[0].code, "parked_behind");
}

TEST(ErrorQueue, AnAbandonedExecutionBeginsNoMore) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.describe("items");
  h.begin();
  h.update("items", {5, "missing", 5});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  auto opened = pg::Connection::open(h.conninfo(), {});
  ASSERT_TRUE(opened);
  const std::atomic<bool> abandon{true};
  const auto executed =
      execute_parked(std::move(*opened), "teststream", std::stoll(h.select("SELECT id FROM thalweg.error_queue")),
                     {.progress = {}, .abandon = &abandon});
  ASSERT_FALSE(executed);
  EXPECT_EQ(executed.error().code, ErrorCode::engine_stopping);
}

}  // namespace
}  // namespace thalweg::apply
