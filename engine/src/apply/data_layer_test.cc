#include <gtest/gtest.h>

#include "apply/apply.h"
#include "apply/apply_harness.h"

// Apply through the destination's extension: what goes below SQL, what does not, and what happens when it fails.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";
constexpr const char* kExtension = "CREATE EXTENSION thalweg_datalayer";

uint64_t calls(ApplyHarness& h) { return h.counter("APPLY SERVER", "data_layer_calls"); }
uint64_t merged(ApplyHarness& h) { return h.counter("APPLY SERVER", "merged_updates"); }
uint64_t sets(ApplyHarness& h) { return h.counter("APPLY SERVER", "sets"); }
uint64_t fallbacks(ApplyHarness& h) { return h.counter("APPLY SERVER", "fallbacks"); }

// Rows of each operation, most of them changed more than once.
void write_history(ApplyHarness& h) {
  h.run(kItems);
  h.describe("items");
  for (int i = 0; i < 3000; ++i) {
    h.begin();
    h.insert("items", {i, "n" + std::to_string(i), i});
    if (i >= 10) h.update("items", {i - 10, Unchanged{}, i});
    if (i >= 20 && i % 10 == 0) h.remove("items", {i - 20, nullptr, nullptr});
    if (i >= 30 && i % 100 == 5) h.update_key("items", {i - 20, nullptr, nullptr}, {i + 10'000, "moved", nullptr});
    h.commit();
  }
}

constexpr const char* kSum = "SELECT count(*), sum(id), sum(amount), md5(string_agg(name, ',' ORDER BY id)) FROM items";

TEST(DataLayer, WritesWhatSqlWrites) {
  ApplyHarness sql;
  write_history(sql);
  ASSERT_FALSE(sql.start_and_finish());
  EXPECT_EQ(calls(sql), 0U);
  ApplyHarness h;
  h.run(kExtension);
  write_history(h);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kSum), sql.select(kSum));
  EXPECT_GT(calls(h), 0U);
  EXPECT_EQ(sets(h), 0U);
  EXPECT_EQ(fallbacks(h), 0U);
  ASSERT_EQ(h.apply().tables().size(), 1U);
  EXPECT_EQ(h.apply().tables()[0].inserts, 3000U);
  EXPECT_EQ(h.apply().tables()[0].updates, sql.apply().tables()[0].updates);
  EXPECT_EQ(h.apply().tables()[0].deletes, sql.apply().tables()[0].deletes);
}

TEST(DataLayer, TakesSingleTransactionsAndObeysItsParameter) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  for (int i = 1; i <= 6; ++i) {
    h.parameters.data_layer = i <= 3;
    h.apply().set_parameters(h.parameters);
    h.insert_one("items", {i, "x", i});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  EXPECT_EQ(calls(h), 3U);
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "6");
  EXPECT_FALSE(h.finish());
}

TEST(DataLayer, LeavesToSqlWhatItDoesNotTakeAndKeepsTheOrder) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.run("CREATE TABLE notes (a int, b text)");
  h.run("CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)");
  h.run("CREATE TABLE parts_1 PARTITION OF parts DEFAULT");
  h.describe("items");
  h.describe("notes", 'f');
  h.describe("parts");
  for (int i = 0; i < 200; ++i) {
    h.begin();
    h.insert("items", {i, "x", i});
    h.insert("notes", {i, "x"});
    h.insert("parts", {i, 0});
    h.update_full("notes", {i, "x"}, {i, "y"});
    h.update("parts", {i, i});
    h.update("items", {i, "y", i});
    if (i % 2 == 0) h.remove_full("notes", {i, "y"});
    h.commit();
    if (i != 100) continue;
    h.begin();
    h.truncate("items");
    h.insert("items", {1000, "after", 1});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), min(id), max(id) FROM items WHERE name = 'y'"), "99|101|199");
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 1000"), "after");
  EXPECT_EQ(h.select("SELECT count(*), min(a), max(a) FROM notes WHERE b = 'y'"), "100|1|199");
  EXPECT_EQ(h.select("SELECT count(*), sum(n) FROM parts"), "200|19900");
  EXPECT_GT(calls(h), 0U);
  EXPECT_EQ(fallbacks(h), 0U);
}

TEST(DataLayer, SendsTypeOidsOfTheDestination) {
  ApplyHarness h;
  h.run(kExtension);
  h.run("CREATE TYPE colour AS ENUM ('red', 'blue')");
  h.run("CREATE TABLE painted (id int PRIMARY KEY, colours colour[])");
  h.describe("painted");
  // One dimension, no NULLs, elements of type 77777 at the source, two of them from 1.
  const std::string array("\0\0\0\1\0\0\0\0\0\1\x2f\xd1\0\0\0\2\0\0\0\1\0\0\0\4blue\0\0\0\3red", 35);
  h.begin();
  h.insert("painted", {1, array});
  h.update("painted", {1, array});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT colours FROM painted"), "{blue,red}");
  EXPECT_EQ(calls(h), 1U);
  EXPECT_EQ(fallbacks(h), 0U);
}

TEST(DataLayer, ARowThatIsTooLargeKeepsItsPlace) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  h.begin();
  for (int i = 0; i < 20; ++i) h.insert("items", {i, "x", 1});
  h.update("items", {1, std::string(65'000'000, 'y'), 2});
  h.update("items", {1, Unchanged{}, 3});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT amount, length(name) FROM items WHERE id = 1"), "3|65000000");
  EXPECT_EQ(fallbacks(h), 0U);
}

// Few rows, updated again and again in one transaction: a value out of line that comes seldom, rows that move and go.
void write_hot_rows(ApplyHarness& h) {
  h.run(kItems);
  h.run("ALTER TABLE items ALTER name SET STORAGE EXTERNAL");
  h.describe("items");
  h.begin();
  for (int i = 0; i < 8; ++i) h.insert("items", {i, std::string(5000, 'a'), 0});
  for (int i = 1; i < 2000; ++i) {
    const int id = i % 7;
    if (i % 100 == 50) {
      h.update("items", {id, std::string(5000, static_cast<char>('a' + i % 23)), i});
    } else if (i % 500 == 7) {
      h.remove("items", {id, nullptr, nullptr});
      h.insert("items", {id, "again", i});
    } else if (i % 300 == 5) {
      h.update_key("items", {7, nullptr, nullptr}, {100, Unchanged{}, i});
      h.update_key("items", {100, nullptr, nullptr}, {7, "back", Unchanged{}});
    } else {
      h.update("items", {i % 3 == 0 ? 7 : id, Unchanged{}, i});
    }
  }
  h.commit();
}

TEST(DataLayer, MergesUpdatesOfHotRows) {
  ApplyHarness sql;
  write_hot_rows(sql);
  ASSERT_FALSE(sql.start_and_finish());
  ApplyHarness h;
  h.run(kExtension);
  write_hot_rows(h);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kSum), sql.select(kSum));
  EXPECT_EQ(h.select("SELECT id, amount FROM items ORDER BY id"),
            sql.select("SELECT id, amount FROM items ORDER BY id"));
  EXPECT_GT(merged(h), 1500U);
  EXPECT_EQ(fallbacks(h), 0U);
  EXPECT_EQ(h.apply().tables()[0].updates, sql.apply().tables()[0].updates);
}

TEST(DataLayer, AConflictAmongMergedUpdatesIsNamedAndParked) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  h.insert_one("items", {1, "x", 0});
  for (int i = 1; i <= 300; ++i) {
    h.begin();
    for (int j = 0; j < 20; ++j) h.update("items", {i == 150 ? 777 : 1, Unchanged{}, i});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, amount FROM items"), "1|300");
  EXPECT_EQ(h.select("SELECT count(*), bool_and(message LIKE '%\"id\" = 777%') FROM thalweg.error_queue"), "1|t");
  EXPECT_GT(merged(h), 0U);
}

TEST(DataLayer, ATriggerForReplicasSeesEveryUpdate) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.run("CREATE TABLE seen (amount bigint)");
  h.run(
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN INSERT INTO public.seen VALUES (NEW.amount); RETURN NULL; END $$");
  h.run("CREATE TRIGGER note AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION note()");
  h.run("ALTER TABLE items ENABLE REPLICA TRIGGER note");
  h.describe("items");
  h.begin();
  h.insert("items", {1, "x", 0});
  for (int i = 1; i <= 200; ++i) h.update("items", {1, Unchanged{}, i});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), max(amount) FROM seen"), "200|200");
  EXPECT_GT(calls(h), 0U);
  EXPECT_EQ(merged(h), 0U);
}

TEST(DataLayer, TakesSpilledTransactions) {
  ApplyHarness h;
  h.parameters.txn_lcr_spill_threshold = 100;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  h.begin(true);
  const auto large = h.xid();
  for (int i = 0; i < 20'000; ++i) {
    h.insert("items", {i, std::string(100, 'x'), i}, i % 2 == 0 ? base::Xid{} : base::Xid{901});
  }
  h.abort({901});
  h.commit_streamed(large);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), sum(id % 2) FROM items"), "10000|0");
  EXPECT_GT(calls(h), 5U);
  EXPECT_EQ(sets(h), 0U);
}

TEST(DataLayer, LeavesCatchUpToSql) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  const base::Lsn from = h.insert_one("items", {2, "v1", 1});
  h.begin();
  h.update_key("items", {2, nullptr, nullptr}, {3, Unchanged{}, 3});
  h.remove("items", {1, nullptr, nullptr});
  const base::Lsn last = h.commit();
  h.insert_one("items", {4, "after", 4});
  h.catch_up = {{.schema_name = "public", .table_name = "items", .copied_from = from, .copied_to = {last.value + 1}}};
  h.run("INSERT INTO items VALUES (1, 'copied', 1)");
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "3|v1|3,4|after|4");
  EXPECT_EQ(fallbacks(h), 0U);
}

TEST(DataLayer, AConflictIsNamedAndParkedAsInSql) {
  for (const int rows : {1, 40}) {
    ApplyHarness h;
    h.parameters.disable_on_error = false;
    h.run(kExtension);
    h.run(kItems);
    h.describe("items");
    h.begin();
    for (int i = 0; i < rows; ++i) h.insert("items", {i, "x", i});
    h.update("items", {777, "missing", 1});
    h.commit();
    h.insert_one("items", {1000, "after", 1});
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
    EXPECT_EQ(h.select("SELECT id FROM items"), "1000");
    EXPECT_EQ(h.select("SELECT message LIKE '%\"id\" = 777%' FROM thalweg.error_queue"), "t");
    EXPECT_GT(fallbacks(h), 0U);
  }
}

TEST(DataLayer, IsNotCalledInASchemaOfSomebodyElse) {
  ApplyHarness h;
  h.parameters.parallelism = 1;
  h.run(kExtension);
  h.run("CREATE ROLE schema_owner; ALTER SCHEMA thalweg_datalayer OWNER TO schema_owner");
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "x", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(calls(h), 0U);
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "1");
  EXPECT_FALSE(h.finish());
  h.run("DROP EXTENSION thalweg_datalayer; DROP SCHEMA IF EXISTS thalweg_datalayer; DROP ROLE schema_owner");
}

TEST(DataLayer, GoesOnInSqlWhenTheExtensionGoes) {
  ApplyHarness h;
  h.parameters.parallelism = 1;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "x", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  const uint64_t before = calls(h);
  EXPECT_EQ(before, 1U);
  h.run("DROP EXTENSION thalweg_datalayer");
  for (int i = 2; i <= 5; ++i) {
    h.insert_one("items", {i, "x", 1});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  EXPECT_EQ(calls(h), before + 1);  // the one that failed
  EXPECT_EQ(fallbacks(h), 1U);
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "5");
  EXPECT_FALSE(h.finish());
}

// The same SQLSTATEs as when the extension has gone, but raised within a call.
TEST(DataLayer, StaysWhenATriggerLacksSomething) {
  ApplyHarness h;
  h.parameters.parallelism = 1;
  h.parameters.disable_on_error = false;
  h.run(kExtension);
  h.run(kItems);
  h.run(
      "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN IF NEW.amount = 1 THEN PERFORM FROM no_such_table; END IF; RETURN NEW; END $$");
  h.run("CREATE TRIGGER broken BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION broken()");
  h.run("ALTER TABLE items ENABLE REPLICA TRIGGER broken");
  h.describe("items");
  ASSERT_TRUE(h.start());
  for (int i = 1; i <= 5; ++i) {
    h.insert_one("items", {i, "x", i == 2 ? 1 : 0});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
  }
  EXPECT_EQ(h.select("SELECT sqlstate FROM thalweg.error_queue"), "42P01");
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "4");
  EXPECT_EQ(calls(h), 5U) << "the data layer was given up";
  EXPECT_FALSE(h.finish());
}

TEST(DataLayer, ATableThatItRefusesIsWrittenInSql) {
  ApplyHarness h;
  h.run(kExtension);
  h.run(kItems);
  h.describe("items");
  // Between the description and the first row the key's index becomes another one.
  h.run("ALTER TABLE items DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (id)");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "x", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  // The call is under way when its index goes: before, the watch of the destination could tell of the other one.
  auto owner = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(owner);
  ASSERT_TRUE(owner->script("BEGIN; ALTER TABLE items DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (id)"));
  h.begin();
  h.update("items", {1, "y", 2});
  h.commit();
  h.feed();
  const std::string waits =
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  for (int i = 0; i < 1000 && h.select(waits) != "1"; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(h.select(waits), "1");
  ASSERT_TRUE(owner->script("COMMIT"));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items"), "1|y|2");
  EXPECT_EQ(fallbacks(h), 1U);
}

// A row that only the destination has goes away, or gives its values up, behind an insert that would have met it.
class HiddenConflict : public testing::TestWithParam<void (*)(ApplyHarness&)> {};

TEST_P(HiddenConflict, IsFound) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kExtension);
  h.run(kItems);
  h.run("ALTER TABLE items ADD UNIQUE (amount)");
  h.run("INSERT INTO items VALUES (1, 'theirs', 7)");
  h.describe("items");
  h.begin();
  h.insert("items", {10, "before", 10});
  GetParam()(h);
  h.commit();
  h.insert_one("items", {11, "after", 11});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT sqlstate FROM thalweg.error_queue"), "23505");
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "1|theirs|7,11|after|11");
  EXPECT_GT(calls(h), 0U);
}

INSTANTIATE_TEST_SUITE_P(DataLayer, HiddenConflict,
                         testing::Values(
                             [](ApplyHarness& h) {
                               h.insert("items", {1, "ours", 1});
                               h.remove("items", {1, nullptr, nullptr});
                             },
                             [](ApplyHarness& h) {
                               h.insert("items", {1, "ours", 1});
                               h.update_key("items", {1, nullptr, nullptr}, {50, Unchanged{}, 2});
                             },
                             [](ApplyHarness& h) {
                               h.insert("items", {2, "ours", 7});
                               h.remove("items", {1, nullptr, nullptr});
                             },
                             [](ApplyHarness& h) {
                               h.insert("items", {2, "ours", 7});
                               h.update("items", {1, Unchanged{}, 8});
                             }));

}  // namespace
}  // namespace thalweg::apply
