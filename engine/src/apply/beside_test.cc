#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "apply/apply.h"
#include "apply/apply_harness.h"
#include "apply/error_queue.h"
#include "apply/gate.h"

// A group that begins while one that it depends on is still being executed: its other rows go ahead, the shared ones
// wait.

namespace thalweg::apply {
namespace {

constexpr const char* kItem = "CREATE TABLE item (id int PRIMARY KEY, a int, b text);";
constexpr int kGroup = 20;  // LCRs

// The first transaction waits at the gate and changes rows 1 to 3; the second shares these with it, in each way that
// rows can be shared, and fills a group.
void share_rows(ApplyHarness& h, const Gate& gate) {
  h.run("INSERT INTO item VALUES (1, 0, 'one'), (2, 0, 'two'), (9, 0, 'nine')");
  h.begin();
  gate.pass();
  h.update("item", {1, 1, "first"});
  h.remove("item", {2, nullptr, nullptr});
  h.insert("item", {3, 1, "first"});
  h.commit();
  h.begin();
  h.update("item", {1, 2, Unchanged{}});
  h.insert("item", {2, 2, "again"});
  h.update("item", {3, 2, "second"});
  h.update("item", {9, 2, "second"});
  for (int id = 100; id < 100 + kGroup; ++id) h.insert("item", {id, id, "x"});
  h.remove("item", {3, nullptr, nullptr});
  h.update("item", {100, 7, "y"});
  h.commit();
}

constexpr const char* kShared = "SELECT id, a, b FROM item WHERE id < 10 ORDER BY id";

// Whether somebody has inserted the row and not committed: to insert it, too, would have to wait.
bool is_being_inserted(ApplyHarness& h, int id) {
  const auto tried =
      h.connection().script("BEGIN; SET LOCAL lock_timeout = 20; INSERT INTO item VALUES (" + std::to_string(id) + ")");
  EXPECT_TRUE(h.connection().script("ROLLBACK"));
  return !tried && tried.error().sqlstate == "55P03";
}

class Beside : public testing::TestWithParam<bool> {
 protected:
  Beside() {
    if (GetParam()) h.run("CREATE EXTENSION thalweg_datalayer");
    h.parameters.group_size = kGroup;
    h.parameters.parallelism = 2;
    Gate::make(h);
    h.run(kItem);
    h.describe("item");
  }
  // Looks while the gate holds the first transaction and the second has written row 100 beside it; then to the end.
  void pass(Gate& gate, const std::function<void()>& look) {
    ASSERT_TRUE(h.start());
    h.feed();
    ASSERT_TRUE(wait_until(h, [this] { return is_being_inserted(h, 100); }));
    look();
    gate.open();
    const auto error = h.finish();
    ASSERT_FALSE(error) << error->message;
  }
  ApplyHarness h;
};

TEST_P(Beside, SharedRowsWaitAndTheOthersDoNot) {
  Gate gate(h, 1);
  share_rows(h, gate);
  pass(gate, [this] {
    ASSERT_TRUE(wait_until(h, [this] { return appliers_in(h, "WAIT DEPENDENCY") == 1; }));
    EXPECT_EQ(h.select(kShared), "1|0|one,2|0|two,9|0|nine");
  });
  EXPECT_EQ(h.select(kShared), "1|2|first,2|2|again,9|2|second");
  EXPECT_EQ(h.select("SELECT count(*), sum(a) FROM item WHERE id >= 100"), "20|2097");
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_groups"), 0U);
  EXPECT_EQ(h.counter("APPLY SERVER", "deadlocks"), 0U);
  EXPECT_EQ(h.counter("APPLY SERVER", "lcrs"), 4U + 26U);
}

TEST_P(Beside, WhatWasBegunBesideAParkedTransactionIsParkedBehindIt) {
  h.parameters.disable_on_error = false;
  Gate gate(h, 1);
  share_rows(h, gate);
  h.run("DELETE FROM item WHERE id = 2");  // the first one looks for it
  h.insert_one("item", {50, 5, "free"});
  pass(gate, [] {});
  EXPECT_EQ(h.select("SELECT id, a FROM item ORDER BY id"), "1|0,9|0,50|5");
  const auto parked = list_parked(h.connection(), "teststream");
  ASSERT_TRUE(parked) << parked.error().message;
  ASSERT_EQ(parked->size(), 2U);
  EXPECT_EQ((*parked)[0].code, "apply_conflict");
  EXPECT_EQ((*parked)[1].code, "parked_behind");
}

// A row of whose key nobody knows what it meets: all that follows it waits, and comes in its order.
TEST_P(Beside, AChangedKeyWaitsAndAllBehindIt) {
  h.run("INSERT INTO item VALUES (1, 0, 'one'), (9, 0, 'nine')");
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.update("item", {1, 1, "first"});
  h.commit();
  h.begin();
  h.insert("item", {100, 1, "x"});
  h.update("item", {1, 2, "second"});
  h.update_key("item", {1, nullptr, nullptr}, {2, 3, "moved"});
  h.insert("item", {1, 4, "new"});
  for (int id = 101; id < 100 + kGroup; ++id) h.insert("item", {id, 1, "x"});
  h.commit();
  pass(gate, [this] {
    ASSERT_TRUE(wait_until(h, [this] { return appliers_in(h, "WAIT DEPENDENCY") == 1; }));
    EXPECT_FALSE(is_being_inserted(h, 101));
  });
  EXPECT_EQ(h.select(kShared), "1|4|new,2|3|moved,9|0|nine");
  EXPECT_EQ(h.select("SELECT count(*) FROM item WHERE id >= 100"), "20");
}

// The first group needs a lock in a trigger, which no key shows: the second group holds it, and gives way.
TEST_P(Beside, ALockThatTheFirstNeedsIsGivenBack) {
  h.run(
      "CREATE FUNCTION count_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "UPDATE public.item SET a = a + 1 WHERE id = 9; RETURN NULL; END $$;"
      "CREATE TABLE noise (id int PRIMARY KEY);"
      "CREATE TRIGGER count_up AFTER INSERT ON noise FOR EACH ROW EXECUTE FUNCTION count_up();"
      "ALTER TABLE noise ENABLE REPLICA TRIGGER count_up; INSERT INTO item VALUES (1, 0, 'one'), (9, 0, 'nine')");
  h.describe("noise");
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.update("item", {1, 1, "first"});
  h.insert("noise", {1});
  h.commit();
  h.begin();
  h.update("item", {1, 2, "second"});
  h.update("item", {9, 5, "second"});
  for (int id = 100; id < 100 + kGroup; ++id) h.insert("item", {id, 1, "x"});
  h.commit();
  pass(gate, [] {});
  EXPECT_EQ(h.select(kShared), "1|2|second,9|5|second");
  EXPECT_EQ(h.counter("APPLY SERVER", "deadlocks"), 1U);
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "errors"), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Beside, testing::Bool(), [](const testing::TestParamInfo<bool>& tested) {
  return tested.param ? "BelowSql" : "InSql";
});

}  // namespace
}  // namespace thalweg::apply
