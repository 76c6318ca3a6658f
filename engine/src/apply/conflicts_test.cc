#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "apply/apply_harness.h"
#include "apply/conflict_log.h"

// Single rows that conflict with the destination's, or that it refuses; conflict_test.cc and error_policy_test.cc test
// which kind it is and what decides.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems =
    "CREATE TABLE items (id int PRIMARY KEY, name text UNIQUE, amount bigint CHECK (amount < 1000))";
constexpr const char* kLog = "SELECT operation, kind, action, change FROM thalweg.conflict_log ORDER BY id";
constexpr const char* kRows = "SELECT id, name, amount FROM items ORDER BY id";
constexpr const char* kQueue = "SELECT code FROM thalweg.error_queue ORDER BY commit_lsn";

ConflictHandler handler(ConflictKind kind, ConflictAction action) { return {.kind = kind, .action = action}; }

uint64_t conflicts(ApplyHarness& h, ConflictKind kind) {
  uint64_t sum = 0;
  for (const auto& table : h.apply().tables()) sum += table.conflicts[static_cast<size_t>(kind)];
  return sum;
}

class Conflicts : public testing::Test {
 protected:
  void SetUp() override {
    h.run(kItems);
    h.describe("items");
    h.parameters.disable_on_error = false;
  }
  // Of one transaction.
  template <typename Write>
  void apply(Write write) {
    h.begin();
    write();
    h.commit();
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
  }
  ApplyHarness h;
};

TEST_F(Conflicts, ADiscardedInsertLeavesTheOthers) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard)};
  apply([&] {
    h.insert("items", {1, "one", 1});
    h.insert("items", {2, "two", 2});
    h.insert("items", {3, "three", 3});
  });
  EXPECT_EQ(h.select(kRows), "1|one|1,2|here|20,3|three|3");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|discard|2");
  EXPECT_EQ(h.select("SELECT new_row->>'name', old_row, destination_row->>'name', destination_row->>'amount', "
                     "column_names, key_columns, sqlstate FROM thalweg.conflict_log"),
            "two|NULL|here|20|{id,name,amount}|{id}|23505");
  EXPECT_EQ(h.select(kQueue), "");
  EXPECT_EQ(conflicts(h, ConflictKind::insert_exists), 1U);
  EXPECT_EQ(h.apply().tables().at(0).inserts, 2U) << "each applied row once, the discarded one never";
}

TEST_F(Conflicts, WithoutAHandlerTheTransactionIsParkedAndCounted) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  apply([&] {
    h.insert("items", {1, "one", 1});
    h.insert("items", {2, "two", 2});
  });
  EXPECT_EQ(h.select(kRows), "2|here|20");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|park|2");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
  EXPECT_EQ(conflicts(h, ConflictKind::insert_exists), 1U);
}

TEST_F(Conflicts, AnInsertOverwritesTheRowWithItsKey) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::overwrite)};
  apply([&] {
    h.insert("items", {2, "two", nullptr});
    h.update("items", {2, "two again", 3});
  });
  EXPECT_EQ(h.select(kRows), "2|two again|3");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|overwrite|1");
  EXPECT_EQ(h.select("SELECT destination_row->>'amount', new_row ? 'amount', new_row->>'amount' "
                     "FROM thalweg.conflict_log"),
            "20|t|NULL");
}

TEST_F(Conflicts, WhatFollowsAnOverwrittenRowIsStillChecked) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::overwrite)};
  apply([&] {
    h.insert("items", {2, "two", 2});
    h.update("items", {9, "nine", 9});
    h.insert("items", {3, "three", 3});
  });
  EXPECT_EQ(h.select(kRows), "2|here|20");
  EXPECT_EQ(h.select(kQueue), "apply_conflict") << "nothing has settled the row that is missing";
}

TEST_F(Conflicts, AnInsertDoesNotOverwriteARowWithAnotherKey) {
  h.run("INSERT INTO items VALUES (7, 'two', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::overwrite)};
  apply([&] { h.insert("items", {2, "two", 2}); });
  EXPECT_EQ(h.select(kRows), "7|two|20");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|park|1");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
}

TEST_F(Conflicts, WhatCannotOverwriteMayBeSkipped) {
  h.run("INSERT INTO items VALUES (7, 'two', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::overwrite)};
  h.parameters.error_policies = {{.error = "23505", .action = ErrorAction::skip}};
  apply([&] { h.insert("items", {2, "two", 2}); });
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|skip|1");
  EXPECT_EQ(h.select("SELECT destination_row->>'id' FROM thalweg.conflict_log"), "7");
}

TEST_F(Conflicts, AnUpdateInsertsTheRowThatItLacks) {
  h.parameters.conflict_handlers = {handler(ConflictKind::update_missing, ConflictAction::overwrite)};
  apply([&] {
    h.update("items", {5, "five", 5});
    h.update("items", {5, "five again", 55});
  });
  EXPECT_EQ(h.select(kRows), "5|five again|55");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_missing|overwrite|1");
}

TEST_F(Conflicts, AnUpdateWithoutAllValuesInsertsNothing) {
  h.parameters.conflict_handlers = {handler(ConflictKind::update_missing, ConflictAction::overwrite)};
  apply([&] { h.update("items", {5, Unchanged{}, 5}); });
  EXPECT_EQ(h.select(kRows), "");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_missing|park|1");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
}

TEST_F(Conflicts, MissingRowsAreDiscardedWithWhatDependsOnThem) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard),
                                    handler(ConflictKind::update_missing, ConflictAction::discard),
                                    handler(ConflictKind::delete_missing, ConflictAction::discard)};
  apply([&] {
    h.insert("items", {1, "here", 1});  // another row has the name
    h.update("items", {1, "one", Unchanged{}});
    h.remove("items", {1, nullptr, nullptr});
    h.insert("items", {3, "three", 3});
  });
  EXPECT_EQ(h.select(kRows), "2|here|20,3|three|3");
  EXPECT_EQ(h.select(kLog),
            "INSERT|insert_exists|discard|1,UPDATE|update_missing|discard|2,DELETE|delete_missing|discard|3");
  EXPECT_EQ(h.select("SELECT new_row ? 'amount', old_row, destination_row FROM thalweg.conflict_log WHERE change = 2"),
            "f|NULL|NULL");
  EXPECT_EQ(h.select("SELECT old_row FROM thalweg.conflict_log WHERE change = 3"), R"({"id": "1"})");
}

TEST_F(Conflicts, AnUpdateThatCollidesIsShownBesideTheOtherRow) {
  h.run("INSERT INTO items VALUES (1, 'one', 1), (2, 'two', 2)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_exists, ConflictAction::discard)};
  apply([&] { h.update("items", {1, "two", 100}); });
  EXPECT_EQ(h.select(kRows), "1|one|1,2|two|2");
  EXPECT_EQ(h.select("SELECT kind, destination_row->>'id' FROM thalweg.conflict_log"), "update_exists|2");
}

TEST_F(Conflicts, AChangeThatViolatesSeveralKeysHasANameOfItsOwn) {
  h.run("INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30), (4, 'four', 40)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard),
                                    handler(ConflictKind::update_exists, ConflictAction::discard)};
  apply([&] {
    h.insert("items", {1, "two", 1});    // of two rows
    h.insert("items", {3, "three", 3});  // of one
    h.insert("items", {4, "other", 4});
    h.update_key("items", {3, nullptr, nullptr}, {4, "two", 0});
    h.update("items", {2, "one", 21});
  });
  EXPECT_EQ(h.select(kRows), "1|one|10,2|two|20,3|three|30,4|four|40");
  EXPECT_EQ(h.select(kLog),
            "INSERT|multiple_unique_conflicts|discard|1,INSERT|multiple_unique_conflicts|discard|2,"
            "INSERT|insert_exists|discard|3,UPDATE|multiple_unique_conflicts|discard|4,UPDATE|update_exists|discard|5");
  EXPECT_EQ(conflicts(h, ConflictKind::multiple_unique_conflicts), 3U);
}

TEST_F(Conflicts, AHandlerOfSeveralKeysStandsBeforeTheGeneralOne) {
  h.run("INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::multiple_unique_conflicts, ConflictAction::error),
                                    handler(ConflictKind::insert_exists, ConflictAction::discard)};
  apply([&] { h.insert("items", {1, "other", 1}); });
  apply([&] { h.insert("items", {1, "two", 1}); });
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|discard|1,INSERT|multiple_unique_conflicts|park|1");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
}

TEST_F(Conflicts, OnlyWholeKeysCountAmongSeveral) {
  h.run(
      "ALTER TABLE items DROP CONSTRAINT items_name_key; CREATE UNIQUE INDEX ON items (name) WHERE amount > 15; "
      "CREATE UNIQUE INDEX ON items (amount, lower(name)); INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 11)");
  h.parameters.conflict_handlers = {handler(ConflictKind::multiple_unique_conflicts, ConflictAction::discard),
                                    handler(ConflictKind::insert_exists, ConflictAction::overwrite)};
  apply([&] { h.insert("items", {1, "two", 11 + 1}); });
  EXPECT_EQ(h.select(kRows), "1|two|12,2|two|11");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|overwrite|1");
}

TEST_F(Conflicts, AHandlerOfSeveralKeysAloneSettlesThem) {
  h.run("INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::multiple_unique_conflicts, ConflictAction::discard)};
  apply([&] { h.insert("items", {1, "two", 1}); });
  apply([&] { h.insert("items", {1, "other", 1}); });
  EXPECT_EQ(h.select(kLog), "INSERT|multiple_unique_conflicts|discard|1,INSERT|insert_exists|park|1");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
}

TEST_F(Conflicts, ARowWithoutItsParentIsDiscarded) {
  h.run(
      "CREATE TABLE child (id int PRIMARY KEY, item int REFERENCES items); "
      "DO $$ DECLARE t record; BEGIN FOR t IN SELECT tgrelid::regclass AS at, tgname FROM pg_trigger WHERE "
      "tgisinternal "
      "LOOP EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.at, t.tgname); END LOOP; END $$; "
      "INSERT INTO items VALUES (1, 'one', 1); INSERT INTO child VALUES (10, 1)");
  h.describe("child");
  h.parameters.conflict_handlers = {handler(ConflictKind::foreign_key_missing, ConflictAction::discard)};
  apply([&] {
    h.insert("child", {11, 99});
    h.insert("child", {12, 1});
  });
  EXPECT_EQ(h.select("SELECT id FROM child ORDER BY id"), "10,12");
  EXPECT_EQ(h.select(kLog), "INSERT|foreign_key_missing|discard|1");
  apply([&] { h.remove("items", {1, nullptr, nullptr}); });
  EXPECT_EQ(h.select(kQueue), "apply_failed") << "its children are there: no conflict of a kind";
}

TEST_F(Conflicts, APolicySkipsARowThatTheDestinationRefuses) {
  h.parameters.error_policies = {{.error = "23514", .action = ErrorAction::skip}};
  apply([&] {
    h.insert("items", {1, "one", 5000});
    h.insert("items", {2, "two", 2});
  });
  EXPECT_EQ(h.select(kRows), "2|two|2");
  EXPECT_EQ(h.select("SELECT kind, action, sqlstate FROM thalweg.conflict_log"), "|skip|23514");
}

TEST_F(Conflicts, WhatFailsAtTheCommitIsNotSkipped) {
  h.run(
      "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE check_violation; END'; "
      "CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id = "
      "2) EXECUTE FUNCTION fail(); ALTER TABLE items ENABLE ALWAYS TRIGGER fail; INSERT INTO items VALUES (1, 'one', "
      "1)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard)};
  h.parameters.error_policies = {{.action = ErrorAction::skip}};
  apply([&] {
    h.insert("items", {1, "again", 1});
    h.insert("items", {2, "two", 1});
  });
  EXPECT_EQ(h.select(kRows), "1|one|1");
  EXPECT_EQ(h.select(kLog), "") << "the discarded change went back with its transaction";
  EXPECT_EQ(h.select(kQueue), "apply_failed") << "disable_on_error decides";
}

TEST_F(Conflicts, OneRowThatNothingSettlesKeepsItsTransactionWhole) {
  h.run("INSERT INTO items VALUES (2, 'here', 20)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard)};
  apply([&] {
    h.insert("items", {1, "one", 1});
    h.insert("items", {2, "two", 2});
    h.update("items", {9, "nine", 9});
  });
  EXPECT_EQ(h.select(kRows), "2|here|20");
  EXPECT_EQ(h.select(kLog), "UPDATE|update_missing|park|3");
  EXPECT_EQ(h.select(kQueue), "apply_conflict");
}

TEST_F(Conflicts, ATriggersDivisionByZeroIsNoMissingRow) {
  h.run(
      "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.amount := 1 / 0; RETURN NEW; END'; "
      "CREATE TRIGGER fail BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION fail(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER fail; INSERT INTO items VALUES (1, 'one', 1)");
  h.parameters.conflict_handlers = {handler(ConflictKind::update_missing, ConflictAction::discard)};
  apply([&] { h.update("items", {1, "two", 2}); });
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(h.select("SELECT code, sqlstate FROM thalweg.error_queue"), "apply_failed|22012");
}

TEST_F(Conflicts, AValueThatTheServerCannotReadIsLoggedAsItCame) {
  h.run("CREATE TYPE mood AS ENUM ('good'); CREATE TABLE moods (id int PRIMARY KEY, mood mood)");
  h.describe("moods");
  h.parameters.error_policies = {{.error = "22", .action = ErrorAction::skip}};
  apply([&] {
    h.insert("moods", {1, "bad"});
    h.insert("moods", {2, "good"});
  });
  EXPECT_EQ(h.select("SELECT id, mood FROM moods"), "2|good");
  EXPECT_EQ(h.select("SELECT action, new_row->>'mood' FROM thalweg.conflict_log"), "skip|bad");
}

TEST_F(Conflicts, ALargeTransactionOnDiskIsSettledRowByRow) {
  constexpr int kCount = 3000;
  h.run("INSERT INTO items SELECT n, 'here ' || n, n % 1000 FROM generate_series(1, 3000, 3) AS n");
  h.parameters.txn_lcr_spill_threshold = 100;
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard)};
  h.parameters.error_policies = {{.error = "23514", .action = ErrorAction::skip}};
  apply([&] {
    for (int64_t n = 1; n <= kCount; ++n) h.insert("items", {n, "there " + std::to_string(n), n % 100 == 0 ? 1000 : 1});
  });
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.conflict_log WHERE kind = 'insert_exists' AND change % 3 = 1"),
            "990");
  EXPECT_EQ(h.select("SELECT count(*), count(DISTINCT change) FROM thalweg.conflict_log WHERE kind = ''"), "30|30");
  EXPECT_EQ(h.select("SELECT count(*) FILTER (WHERE name = 'here ' || id), count(*) FILTER (WHERE name = 'there ' || "
                     "id) FROM items"),
            "1000|1980");
}

TEST_F(Conflicts, TheLogIsListedCountedAndPruned) {
  h.run("INSERT INTO items VALUES (1, 'here', 1)");
  h.parameters.conflict_handlers = {handler(ConflictKind::insert_exists, ConflictAction::discard),
                                    handler(ConflictKind::delete_missing, ConflictAction::discard)};
  apply([&] {
    h.insert("items", {1, "one", nullptr});
    h.insert("items", {1, std::string(2000, 'x'), 1});
    h.remove("items", {8, nullptr, nullptr});
  });
  const auto all = list_conflicts(h.connection(), "teststream", {});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->conflicts.size(), 3U);
  EXPECT_FALSE(all->more);
  EXPECT_EQ(all->conflicts.at(0).kind, "delete_missing");
  EXPECT_EQ(all->conflicts.at(0).columns.at(0).before, "8");
  EXPECT_FALSE(all->conflicts.at(0).columns.at(1).before.has_value()) << "the change brought its key only";
  EXPECT_FALSE(all->conflicts.at(0).has_row);
  const auto& oldest = all->conflicts.at(2);
  EXPECT_TRUE(oldest.has_row);
  EXPECT_EQ(oldest.columns.at(1).wanted, "one");
  EXPECT_EQ(oldest.columns.at(1).there, "here");
  EXPECT_TRUE(oldest.columns.at(2).wanted.has_value() && !oldest.columns.at(2).wanted->has_value()) << "NULL";
  EXPECT_EQ(all->conflicts.at(1).columns.at(1).wanted->value().size(), 1000U);
  const auto part = list_conflicts(h.connection(), "teststream",
                                   {.before = all->conflicts.at(1).id,
                                    .limit = 5,
                                    .kind = "insert_exists",
                                    .schema_name = "public",
                                    .table_name = "items"});
  ASSERT_TRUE(part);
  ASSERT_EQ(part->conflicts.size(), 1U);
  EXPECT_EQ(part->conflicts.at(0).id, oldest.id);
  const auto counts = count_conflicts(h.connection(), "teststream");
  ASSERT_TRUE(counts);
  ASSERT_EQ(counts->size(), 2U);
  EXPECT_EQ(counts->at(0).changes, 2U);
  EXPECT_EQ(counts->at(0).kind, "insert_exists");
  h.run("UPDATE thalweg.conflict_log SET logged_at = now() - interval '3 days' WHERE change < 3");
  ASSERT_TRUE(prune_conflicts(h.connection(), "teststream", std::chrono::days(4)));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.conflict_log"), "3");
  ASSERT_TRUE(prune_conflicts(h.connection(), "teststream", std::chrono::days(2)));
  EXPECT_EQ(h.select("SELECT change FROM thalweg.conflict_log"), "3");
}

// The log has it as well as the error queue, with the rows as they were then; what is parked behind it is no conflict.
TEST_F(Conflicts, AConflictForWhichItsTransactionIsParkedIsLogged) {
  h.run("INSERT INTO items VALUES (2, 'here', 20), (5, 'five', 5), (9, 'nine', 9)");
  h.begin();
  h.insert("items", {1, "one", 1});
  h.insert("items", {2, "two", 2});
  h.commit();
  apply([&] { h.update("items", {2, "more", 3}); });
  EXPECT_EQ(h.select(kRows), "2|here|20,5|five|5,9|nine|9");
  EXPECT_EQ(h.select(kQueue), "apply_conflict,parked_behind");
  EXPECT_EQ(h.select(kLog), "INSERT|insert_exists|park|2");
  EXPECT_EQ(h.select("SELECT new_row->>'name', destination_row->>'name', sqlstate, message LIKE '%duplicate%' FROM "
                     "thalweg.conflict_log"),
            "two|here|23505|t");
  EXPECT_EQ(conflicts(h, ConflictKind::insert_exists), 1U);
  const auto counts = count_conflicts(h.connection(), "teststream");
  ASSERT_TRUE(counts);
  ASSERT_EQ(counts->size(), 1U);
  EXPECT_EQ(counts->at(0).action, "park");

  // The keys of two rows are in its way, a row is missing, and an error that is no conflict.
  apply([&] { h.insert("items", {3, "here", 3}); });
  apply([&] { h.insert("items", {9, "five", 3}); });
  apply([&] { h.remove("items", {77, nullptr, nullptr}); });
  apply([&] { h.insert("items", {78, "large", 5000}); });
  EXPECT_EQ(h.select("SELECT kind, action, destination_row->>'id' FROM thalweg.conflict_log ORDER BY id OFFSET 1"),
            "insert_exists|park|2,multiple_unique_conflicts|park|9,delete_missing|park|NULL");
}

TEST_F(Conflicts, APageOfTheLogEndsWhereItsValuesAreLarge) {
  h.parameters.conflict_handlers = {handler(ConflictKind::delete_missing, ConflictAction::discard),
                                    handler(ConflictKind::update_missing, ConflictAction::discard)};
  apply([&] {
    for (int64_t n = 1; n <= 5; ++n) h.update("items", {n, std::string(20'000, 'x'), 1});
    for (int64_t n = 6; n <= 8; ++n) h.remove("items", {n, nullptr, nullptr});
  });
  std::vector<uint64_t> changes;
  std::vector<size_t> pages;
  telemetry::ConflictPart part{.characters_max = telemetry::kLoggedCharactersMax};
  for (bool more = true; more && pages.size() < 10;) {
    const auto page = list_conflicts(h.connection(), "teststream", part, 30'000);
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_FALSE(page->conflicts.empty());
    for (const auto& entry : page->conflicts) changes.push_back(entry.change);
    pages.push_back(page->conflicts.size());
    part.before = page->conflicts.back().id;
    more = page->more;
  }
  EXPECT_EQ(changes, (std::vector<uint64_t>{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(pages, (std::vector<size_t>{5, 2, 1}));
  const auto short_values = list_conflicts(h.connection(), "teststream", {.characters_max = 1}, 30'000);
  ASSERT_TRUE(short_values);
  EXPECT_EQ(short_values->conflicts.size(), 8U) << "what is cut takes no room";
}

TEST_F(Conflicts, TheSchemaOfAnOlderEngineGetsTheLog) {
  h.run("DROP TABLE thalweg.conflict_log");
  const auto none = list_conflicts(h.connection(), "teststream", {});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->conflicts.empty());
  ASSERT_TRUE(ensure_schema(h.connection()));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.conflict_log"), "0");
}

}  // namespace
}  // namespace thalweg::apply
