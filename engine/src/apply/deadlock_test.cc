#include <gtest/gtest.h>

#include <string>

#include "apply/apply.h"
#include "apply/apply_harness.h"
#include "apply/gate.h"

// Appliers that need what others hold. No two groups that share a key run together, so it takes what no key shows: a
// trigger of the destination's own that writes other rows.

namespace thalweg::apply {
namespace {

using telemetry::Activity;

// An insert with tally = t changes row t of table tally.
void make_tallies(ApplyHarness& h) {
  Gate::make(h);
  h.run(
      "CREATE TABLE item (id int PRIMARY KEY, tally int); CREATE TABLE tally (id int PRIMARY KEY, n int);"
      "INSERT INTO tally VALUES (1, 0), (2, 0), (3, 0);"
      "CREATE FUNCTION count_item() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "UPDATE public.tally SET n = n + 1 WHERE id = NEW.tally; RETURN NULL; END $$;"
      "CREATE TRIGGER count_item AFTER INSERT ON item FOR EACH ROW EXECUTE FUNCTION count_item();"
      "ALTER TABLE item ENABLE REPLICA TRIGGER count_item");
  h.describe("item");
  h.parameters.group_size = 1;
  h.parameters.parallelism = 3;
}

int blocked_sessions(ApplyHarness& h) {
  return std::stoi(
      h.select("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
               "AND wait_event_type = 'Lock'"));
}

std::string tallies(ApplyHarness& h) { return h.select("SELECT n FROM tally ORDER BY id"); }

TEST(Deadlock, ThatTheServerFindsIsCountedAndTriedAgain) {
  ApplyHarness h;
  h.run("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 50', current_database()); END $$");
  make_tallies(h);
  Gate gate(h, 1);
  h.begin();
  h.insert("item", {1, 1});
  gate.pass();
  h.insert("item", {2, 2});
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return blocked_sessions(h) == 1; }));
  h.begin();
  h.insert("item", {3, 2});
  h.insert("item", {4, 1});
  h.commit();
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return blocked_sessions(h) == 2; }));
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(tallies(h), "2,2,0");
  // Once, or again where the one that was ended comes back before the other has got on. Then it runs singly, and its
  // applier tries its transaction again by itself: the coordinator hears of no retry.
  EXPECT_GE(h.counter("APPLY COORDINATOR", "retried_groups"), 1U);
  EXPECT_GE(h.counter("APPLY SERVER", "deadlocks"), h.counter("APPLY COORDINATOR", "retried_groups"));
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "errors"), 0U);
}

TEST(Deadlock, BetweenCommitOrderAndALockIsResolved) {
  ApplyHarness h;
  make_tallies(h);
  h.parameters.commit_serialization = CommitSerialization::full;
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.insert("item", {1, 1});
  h.commit();
  h.insert_one("item", {2, 1});
  ASSERT_TRUE(h.start());
  h.feed();
  // It has executed beside the first one.
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT COMMIT") == 1; }));
  EXPECT_EQ(h.select("SELECT count(*) FROM item"), "0");
  EXPECT_GT(applier_time(h, Activity::commit_order), 0U);
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(tallies(h), "2,0,0");
  EXPECT_EQ(h.counter("APPLY SERVER", "deadlocks"), 1U);
}

TEST(Deadlock, BetweenCommitOrderAndALockByWayOfAThirdIsResolved) {
  ApplyHarness h;
  make_tallies(h);
  h.parameters.commit_serialization = CommitSerialization::full;
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.insert("item", {1, 1});
  h.commit();
  h.insert_one("item", {2, 2});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT COMMIT") == 1; }));
  h.begin();
  h.insert("item", {3, 1});
  h.insert("item", {4, 2});
  h.commit();
  h.feed();
  // The second holds 2 until the first has committed, the third holds 1 until it gets 2; then the first wants 1.
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT COMMIT") == 1 && blocked_sessions(h) == 2; }));
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(tallies(h), "2,2,0");
  EXPECT_GE(h.counter("APPLY SERVER", "deadlocks"), 1U);
}

TEST(Deadlock, BetweenCommitOrderAndFewerAppliersIsResolved) {
  ApplyHarness h;
  make_tallies(h);
  h.parameters.commit_serialization = CommitSerialization::full;
  Gate first(h, 1);
  Gate second(h, 2);
  h.begin();
  first.pass();
  h.commit();
  h.begin();
  second.pass();
  h.insert("item", {1, 1});
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return blocked_sessions(h) == 2; }));
  first.open();
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "EXECUTE TRANSACTION") == 1; }));
  h.begin();  // depends on the second group
  h.remove("item", {1, nullptr});
  h.commit();
  h.insert_one("item", {2, 2});  // runs on the first applier, and has to wait for the one before it
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT COMMIT") == 1; }));
  h.parameters.parallelism = 1;
  h.apply().set_parameters(h.parameters);
  // In force once the third one, which has no group, is gone.
  ASSERT_TRUE(wait_until(h, [&h] { return h.apply().sample().size() == 4; }));  // reader, coordinator, two appliers
  second.open();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM item"), "2");
  EXPECT_EQ(h.counter("APPLY SERVER", "deadlocks"), 1U);
}

// The error queue is read again once nothing runs; until then only groups begin that running ones wait for.
TEST(Deadlock, BetweenCommitOrderAndAChangedErrorQueueIsAvoided) {
  ApplyHarness h;
  make_tallies(h);
  h.parameters.commit_serialization = CommitSerialization::full;
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.insert("item", {1, 1});
  h.commit();
  h.begin();  // depends on the first group
  h.remove("item", {1, nullptr});
  h.commit();
  h.insert_one("item", {2, 2});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT COMMIT") == 1; }));
  h.apply().note_errors_changed();
  gate.open();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM item"), "2");
  EXPECT_EQ(h.counter("APPLY SERVER", "deadlocks"), 0U);
}

}  // namespace
}  // namespace thalweg::apply
