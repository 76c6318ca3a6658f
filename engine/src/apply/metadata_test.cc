#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "apply/apply.h"
#include "apply/apply_harness.h"
#include "apply/gate.h"

// Tables' metadata in a running apply: the destination changes, versions come and go, memory is short.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";

uint64_t of_reader(ApplyHarness& h, std::string_view name) { return h.counter("APPLY READER", name); }
int64_t gauge(ApplyHarness& h, std::string_view name) {
  for (const auto& sample : h.apply().sample()) {
    if (sample.sub_component != "APPLY READER") continue;
    for (const auto& [gauge_name, value] : sample.gauges) {
      if (gauge_name == name) return value;
    }
  }
  return -1;
}

// Waits for the reader's look at the destination, which needs transactions.
bool wait_for_counter(ApplyHarness& h, std::string_view name, uint64_t at_least, int& next_id) {
  for (int i = 0; i < 600; ++i) {
    if (of_reader(h, name) >= at_least) return true;
    h.insert_one("items", {next_id++, "while waiting", 0});
    h.feed();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST(Metadata, IsLoadedOncePerTableAndFoundByAppliers) {
  ApplyHarness h;
  h.run(kItems);
  h.run("CREATE TABLE other (id int PRIMARY KEY)");
  h.describe("items");
  h.describe("other");
  for (int i = 0; i < 500; ++i) {
    h.begin();
    h.insert("items", {i, "n", i});
    h.insert("other", {i});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(of_reader(h, "metadata_loads"), 2U);
  EXPECT_EQ(of_reader(h, "metadata_misses"), 0U);
  EXPECT_GE(of_reader(h, "metadata_hits"), 1000U);  // the reader's, for its hashes
  EXPECT_EQ(gauge(h, "metadata_tables"), 2);
  EXPECT_GT(gauge(h, "metadata_bytes"), 0);
}

TEST(Metadata, OfSupersededVersionsIsPurged) {
  ApplyHarness h;
  h.run(kItems);
  ASSERT_TRUE(h.start());
  for (int version = 1; version <= 20; ++version) {
    h.describe("items");
    h.insert_one("items", {version, "n", version});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  int id = 1000;
  ASSERT_TRUE(wait_for_counter(h, "metadata_purged", 18, id));
  EXPECT_LE(gauge(h, "metadata_tables"), 2);
  ASSERT_FALSE(h.finish());
}

// As after a restart of the engine that captures: its versions begin anew.
TEST(Metadata, AVersionNumberMayComeAgain) {
  ApplyHarness h;
  h.run(kItems);
  ASSERT_TRUE(h.start());
  h.describe("items");
  h.insert_one("items", {1, "n", 1});
  h.run("ALTER TABLE items ADD COLUMN more text");
  h.describe("items");
  h.insert_one("items", {2, "n", 2, "of version 2"});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  h.forget_descriptions();
  h.describe("items");
  h.insert_one("items", {3, "n", 3, "of another version 1"});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  h.run("ALTER TABLE items DROP COLUMN more");
  h.forget_descriptions();
  h.describe("items");
  h.insert_one("items", {4, "n", 4});
  // Long enough for the superseded ones to be dropped.
  for (int id = 5; id < 600; ++id) h.insert_one("items", {id, "n", id});
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "599");
}

TEST(Metadata, AStreamedTransactionKeepsTheVersionOfItsRows) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.begin(true);
  const base::Xid open = h.xid();
  h.insert("items", {1, "of version 1", 1});
  h.describe("items");
  h.insert("items", {2, "of version 2", 2});
  int id = 1000;
  for (int i = 0; i < 300; ++i) h.insert_one("items", {id++, "n", i});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  h.commit_streamed(open);
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, name FROM items WHERE id < 10 ORDER BY id"), "1|of version 1,2|of version 2");
}

TEST(Metadata, WorksWithAFractionOfTheMemoryThatItsTablesNeed) {
  ApplyHarness h;
  h.parameters.metadata_cache_bytes = 4000;  // about three tables
  constexpr int kTables = 12;
  for (int table = 0; table < kTables; ++table) {
    h.run("CREATE TABLE t" + std::to_string(table) + " (id int PRIMARY KEY, name text)");
    h.describe("t" + std::to_string(table));
  }
  for (int i = 0; i < 60; ++i) {
    h.begin();
    for (int table = 0; table < kTables; ++table) h.insert("t" + std::to_string(table), {i, "n"});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  for (int table = 0; table < kTables; ++table) {
    EXPECT_EQ(h.select("SELECT count(*), sum(id) FROM t" + std::to_string(table)), "60|1770");
  }
  EXPECT_GT(of_reader(h, "metadata_replaced"), 0U);
  EXPECT_LE(gauge(h, "metadata_bytes"), 3 * 4000);
}

TEST(Metadata, IsLoadedAgainWhenTheDestinationChanges) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  int id = 1;
  h.insert_one("items", {id++, "n", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  uint64_t invalidations = of_reader(h, "metadata_invalidations");
  for (const char* change :
       {"ALTER TABLE items ADD COLUMN noted text DEFAULT 'here'", "CREATE UNIQUE INDEX ON items (name, id)",
        "ALTER TABLE items DROP COLUMN noted", "ALTER TABLE items ALTER COLUMN name SET NOT NULL",
        "CREATE TABLE child (item int REFERENCES items)", "DROP TABLE child"}) {
    h.run(change);
    ASSERT_TRUE(wait_for_counter(h, "metadata_invalidations", ++invalidations, id)) << change;
    // It is counted before it is loaded again: what comes behind waits for that. Else the load may see the next change.
    h.insert_one("items", {id++, "n", 1});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  invalidations = of_reader(h, "metadata_invalidations");
  // Commands that do not change the table's shape invalidate nothing.
  h.run("VACUUM FULL items");
  h.run("ANALYZE items");
  for (int i = 0; i < 70; ++i) {
    h.insert_one("items", {id++, "n", 1});
    h.feed();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(of_reader(h, "metadata_invalidations"), invalidations);
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), std::to_string(id - 1));
}

// The look at the destination may take long: what comes meanwhile does not wait for it.
TEST(Metadata, ChangesDoNotWaitForTheLook) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "n", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  auto other = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->script("BEGIN; LOCK pg_catalog.pg_trigger IN ACCESS EXCLUSIVE MODE"));
  int id = 2;
  const auto feed_one = [&] {
    h.insert_one("items", {id++, "n", 1});
    h.feed();
  };
  ASSERT_TRUE(wait_until(h, [&] {
    feed_one();
    return h.select(
               "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%reader watch' AND "
               "wait_event_type = 'Lock'") == "1";
  }));
  feed_one();
  EXPECT_TRUE(h.wait_until_applied(h.end()));
  ASSERT_TRUE(other->script("ROLLBACK"));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), std::to_string(id - 1));
}

// Faster than the look: a statement fails, and its next try has the new metadata.
TEST(Metadata, AFailedStatementTellsOfAChange) {
  for (const bool below_sql : {false, true}) {
    ApplyHarness h;
    if (below_sql) h.run("CREATE EXTENSION thalweg_datalayer");
    h.run(kItems);
    h.describe("items");
    ASSERT_TRUE(h.start());
    h.insert_one("items", {1, "n", 1});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
    const uint64_t calls = h.counter("APPLY SERVER", "data_layer_calls");
    // Another table of the same name: its oids are others, amount is generated.
    h.run(
        "DROP TABLE items; CREATE TABLE items (name text, id int PRIMARY KEY, "
        "amount bigint GENERATED ALWAYS AS (id * 10) STORED)");
    for (int id = 2; id < 8; ++id) {
      h.insert_one("items", {id, "n", 99});
      h.feed();
      ASSERT_TRUE(h.wait_until_applied(h.end())) << h.apply().status().error->message;
    }
    h.begin();
    h.update("items", {3, "changed", 99});
    h.remove("items", {4, nullptr, nullptr});
    h.commit();
    const auto error = h.finish();
    ASSERT_FALSE(error) << error->message;
    EXPECT_EQ(h.select("SELECT id, name, amount FROM items ORDER BY id"), "2|n|20,3|changed|30,5|n|50,6|n|60,7|n|70");
    EXPECT_GE(of_reader(h, "metadata_invalidations"), 1U);
    if (below_sql) {
      EXPECT_GE(h.counter("APPLY SERVER", "data_layer_calls"), calls + 6) << "the data layer was given up";
    }
  }
}

TEST(Metadata, AColumnThatIsGoneStopsTheApplyAndSaysSo) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "n", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  h.run("ALTER TABLE items DROP COLUMN amount");
  h.insert_one("items", {2, "n", 2});
  const auto error = h.finish();
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("has no column \"amount\" at the destination"), std::string::npos) << error->message;
  h.run("ALTER TABLE items ADD COLUMN amount bigint");
  const auto again = h.start_and_finish();
  ASSERT_FALSE(again) << again->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "1|n|NULL,2|n|2");
}

// Four appliers, and a destination whose tables change all the time in ways that leave room for the rows.
TEST(Metadata, SurvivesConcurrentChangesOfTheDestination) {
  for (const bool below_sql : {false, true}) {
    ApplyHarness h;
    if (below_sql) h.run("CREATE EXTENSION thalweg_datalayer");
    h.parameters.group_size = 40;
    h.parameters.metadata_cache_bytes = 6000;
    for (const char* table : {"a", "b", "c", "d"}) {
      h.run(std::string("CREATE TABLE ") + table + " (id int PRIMARY KEY, name text, amount bigint)");
      h.describe(table);
    }
    ASSERT_TRUE(h.start());
    std::atomic<bool> done{false};
    uint64_t changes = 0;
    std::thread changer([&] {
      auto connection = pg::Connection::open(h.conninfo(), {.search_path = "public"});
      ASSERT_TRUE(connection);
      while (!done.load(std::memory_order_acquire)) {
        const std::string table(1, "abcd"[changes % 4]);
        for (const std::string& change :
             {"ALTER TABLE " + table + " ADD COLUMN extra text DEFAULT 'x'",
              "CREATE UNIQUE INDEX extra_index ON " + table + " (amount, id)",
              "ALTER TABLE " + table + " DROP CONSTRAINT " + table + "_pkey, ADD PRIMARY KEY (id)",
              std::string("DROP INDEX extra_index"), "ALTER TABLE " + table + " DROP COLUMN extra"}) {
          const auto changed = connection->query(change);
          // An applier may be the other side of a deadlock: then again.
          if (!changed && changed.error().code == ErrorCode::database_busy) {
            (void)connection->query("DROP INDEX IF EXISTS extra_index");
            (void)connection->query("ALTER TABLE " + table + " DROP COLUMN IF EXISTS extra");
            break;
          }
          ASSERT_TRUE(changed) << changed.error().message;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ++changes;
      }
    });
    constexpr int kRounds = 900;
    for (int i = 0; i < kRounds; ++i) {
      for (const char* table : {"a", "b", "c", "d"}) {
        h.begin();
        h.insert(table, {i, "n", i});
        if (i > 4) h.update(table, {i - 4, "u", i});
        if (i > 9 && i % 3 == 0) h.remove(table, {i - 9, nullptr, nullptr});
        h.commit();
      }
      if (i % 10 == 0) {
        h.feed();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    h.feed();
    // The reader looks for changed tables once a second, while transactions flow.
    for (int i = 0; i < 1000 && of_reader(h, "metadata_invalidations") == 0; ++i) {
      for (const char* table : {"a", "b", "c", "d"}) {
        h.begin();
        h.update(table, {kRounds - 1, "n", kRounds - 1});
        h.commit();
      }
      h.feed();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    // A machine that is busy with other things never catches up while tables go on changing.
    done.store(true, std::memory_order_release);
    changer.join();
    const bool applied = h.wait_until_applied(h.end());
    const auto error = h.finish();
    ASSERT_FALSE(error) << error->message;
    ASSERT_TRUE(applied);
    EXPECT_GT(changes, 3U);
    const std::string a = h.select("SELECT count(*), sum(id), sum(amount), count(*) FILTER (WHERE name = 'u') FROM a");
    EXPECT_EQ(a.substr(0, a.find('|')), std::to_string(kRounds - (kRounds - 10) / 3));
    for (const char* table : {"b", "c", "d"}) {
      EXPECT_EQ(
          h.select(std::string("SELECT count(*), sum(id), sum(amount), count(*) FILTER (WHERE name = 'u') FROM ") +
                   table),
          a);
    }
    EXPECT_GT(of_reader(h, "metadata_invalidations"), 0U);
  }
}

}  // namespace
}  // namespace thalweg::apply
