#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apply/error_queue.h"
#include "apply/statement_handler_fixture.h"

// Statements of users for changes and transactions; control/statement_handlers_test.cc tests how bind names are found.

namespace thalweg::apply {
namespace {

using base::ErrorCode;
using metadata::HandlerTime;
using metadata::StatementHandler;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";
constexpr const char* kQuoted = "\"public\".\"items\"";
constexpr const char* kAudit =
    "CREATE TABLE audit (number bigserial, operation text, id int, old_amount bigint, new_amount bigint)";
constexpr const char* kAudited = "SELECT operation, id, old_amount, new_amount FROM audit ORDER BY number";
constexpr const char* kRows = "SELECT id, name, amount FROM items ORDER BY id";
constexpr const char* kQueue = "SELECT code, sqlstate FROM thalweg.error_queue ORDER BY commit_lsn";
constexpr const char* kInsertIntoAudit =
    "INSERT INTO public.audit (operation, id, old_amount, new_amount) "
    "VALUES (:operation, coalesce(:new.id, :old.id), :old.amount, :new.amount)";

StatementHandler handler(HandlerTime time, const std::string& statement, const std::string& table = kQuoted) {
  return {
      .number = 0, .table = time == HandlerTime::precommit ? "" : table, .time = time, .statement = bound(statement)};
}

class StatementHandlersTest : public StatementHandlerFixture {
 protected:
  void SetUp() override {
    set_up(kItems);
    h.run(kAudit);
  }
  // Three transactions with changes of one row, in each way.
  void write_life_of_a_row() {
    h.insert_one("items", {1, "one", 10});
    h.begin();
    h.update_full("items", {1, "one", 10}, {1, "one", 11});
    h.insert("others", {1, "other"});
    h.update_full("items", {1, "one", 11}, {1, "one", nullptr});
    h.commit();
    h.begin();
    h.remove_full("items", {1, "one", nullptr});
    h.commit();
  }
  uint64_t fallbacks() { return h.counter("APPLY SERVER", "fallbacks"); }
};

constexpr const char* kLifeOfARow = "INSERT|1|NULL|10,UPDATE|1|10|11,UPDATE|1|11|NULL,DELETE|1|NULL|NULL";

TEST_F(StatementHandlersTest, OneAfterTheChangesSeesEachOfThemInOrder) {
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  write_life_of_a_row();
  finish();
  EXPECT_EQ(h.select(kAudited), kLifeOfARow);
  EXPECT_EQ(h.select(kRows), "");
  EXPECT_EQ(h.select("SELECT name FROM others"), "other");
  EXPECT_EQ(fallbacks(), 0U);
}

TEST_F(StatementHandlersTest, OneInsteadOfTheChangesLeavesTheTableAlone) {
  handle_by({handler(HandlerTime::instead, kInsertIntoAudit)});
  h.insert_one("items", {1, "one", 10});
  h.begin();
  h.update_full("items", {1, "one", 10}, {1, "one", 11});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10,UPDATE|1|10|11");
}

TEST_F(StatementHandlersTest, OneOfSomeOperationsLeavesTheOthersAsTheyAre) {
  StatementHandler deletes = handler(HandlerTime::instead, "UPDATE public.items SET name = 'gone' WHERE id = :old.id");
  deletes.of_inserts = deletes.of_updates = false;
  StatementHandler inserts = handler(HandlerTime::after, kInsertIntoAudit);
  inserts.of_updates = inserts.of_deletes = false;
  handle_by({deletes, inserts});
  h.insert_one("items", {1, "one", 10});
  h.begin();
  h.update_full("items", {1, "one", 10}, {1, "one", 11});
  h.remove_full("items", {1, "one", 11});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|gone|11");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10");
}

TEST_F(StatementHandlersTest, SeveralOfAChangeRunInTheirOrder) {
  const auto note = [](const std::string& text) {
    return "INSERT INTO public.audit (operation, id) SELECT '" + text + "', count(*) FROM public.items";
  };
  handle_by({handler(HandlerTime::after, note("second")), handler(HandlerTime::instead, note("first")),
             handler(HandlerTime::instead, "INSERT INTO public.items VALUES (:new.id + 100, :new.name, :new.amount)"),
             handler(HandlerTime::after, note("third"), "")});
  h.insert_one("items", {1, "one", 10});
  finish();
  EXPECT_EQ(h.select("SELECT operation, id FROM audit ORDER BY number"), "first|0,second|1,third|1");
  EXPECT_EQ(h.select(kRows), "101|one|10");
}

TEST_F(StatementHandlersTest, TellsTheChangeAndItsTransaction) {
  h.run("CREATE TABLE told (s text, t text, o text, at timestamptz, lsn pg_lsn, xid bigint, name text)");
  handle_by({handler(HandlerTime::after,
                     "INSERT INTO public.told VALUES (:schema, :table, :operation, :commit_time, :commit_lsn, :xid, "
                     "upper(:new.name))")});
  const base::Lsn lsn = h.insert_one("items", {1, "o:'ne", 10});
  finish();
  EXPECT_EQ(h.select("SELECT s, t, o, lsn, xid, name FROM told"),
            "public|items|INSERT|" + base::to_string(lsn) + "|" + std::to_string(h.xid().value) + "|O:'NE");
  EXPECT_EQ(h.select("SELECT abs(extract(epoch FROM now() - at)) < 600 FROM told"), "t");
}

TEST_F(StatementHandlersTest, OneBeforeTheCommitRunsOnceForEachTransactionWithChanges) {
  h.run("CREATE TABLE commits (number bigserial, xid bigint, lsn pg_lsn, rows bigint)");
  handle_by({handler(HandlerTime::precommit,
                     "INSERT INTO public.commits (xid, lsn, rows) SELECT :xid, :commit_lsn, count(*) FROM "
                     "public.items")});
  std::string expected;
  for (int64_t i = 0; i < 3000; ++i) {
    h.begin();
    h.insert("items", {i, "n", i});
    const base::Lsn lsn = h.commit();
    expected +=
        (i == 0 ? "" : ",") + std::to_string(h.xid().value) + "|" + base::to_string(lsn) + "|" + std::to_string(i + 1);
    if (i % 100 == 0) {
      h.begin();  // without a change
      h.commit();
    }
  }
  finish();
  EXPECT_EQ(h.select("SELECT xid, lsn, rows FROM commits ORDER BY number"), expected)
      << "each sees the rows of its own transaction, and of none behind it";
}

TEST_F(StatementHandlersTest, TwoBeforeTheCommitMayDifferInTheirValuesOnly) {
  const std::string insert = "INSERT INTO public.audit (operation) VALUES ";
  handle_by({handler(HandlerTime::precommit, insert + "(:xid::text)"),
             handler(HandlerTime::precommit, insert + "(:commit_lsn::text)")});
  h.insert_one("items", {1, "one", 10});
  finish();
  EXPECT_EQ(h.select("SELECT operation LIKE '%/%' FROM audit ORDER BY number"), "f,t");
}

TEST_F(StatementHandlersTest, WhatWaitsInTheDataLayerIsWrittenBefore) {
  h.run("CREATE EXTENSION thalweg_datalayer");
  h.run("CREATE TABLE seen (number bigserial, others bigint)");
  handle_by({handler(HandlerTime::after, "INSERT INTO public.seen (others) SELECT count(*) FROM public.others"),
             handler(HandlerTime::precommit, "INSERT INTO public.seen (others) SELECT -count(*) FROM public.others")});
  std::string expected;
  for (int64_t i = 0; i < 500; ++i) {
    h.begin();
    h.insert("others", {2 * i, "a"});
    h.insert("items", {i, "n", i});
    h.insert("others", {2 * i + 1, "b"});
    h.commit();
    expected += (i == 0 ? "" : ",") + std::to_string(2 * i + 1) + "," + std::to_string(-2 * (i + 1));
  }
  finish();
  EXPECT_EQ(h.select("SELECT others FROM seen ORDER BY number"), expected);
  EXPECT_GT(h.counter("APPLY SERVER", "data_layer_calls"), 0U);
}

TEST_F(StatementHandlersTest, TransactionsKeepTheirOrderWhateverTheyWrite) {
  h.run("CREATE TABLE latest (one int PRIMARY KEY, id int)");
  h.run("INSERT INTO latest VALUES (1, -1)");
  h.run("CREATE TABLE history (number bigserial, id int)");
  h.parameters.parallelism = 4;
  h.parameters.group_size = 1;
  handle_by({handler(HandlerTime::instead,
                     "WITH changed AS (UPDATE public.latest SET id = :new.id WHERE one = 1 "
                     "RETURNING id) INSERT INTO public.history (id) SELECT id FROM changed")});
  std::string expected;
  for (int64_t i = 0; i < 300; ++i) {
    h.insert_one("items", {i, "n", i});
    h.insert_one("others", {i, "free"});
    expected += (i == 0 ? "" : ",") + std::to_string(i);
  }
  finish();
  EXPECT_EQ(h.select("SELECT id FROM latest"), "299");
  EXPECT_EQ(h.select("SELECT id FROM history ORDER BY number"), expected);
  EXPECT_EQ(h.select("SELECT count(*) FROM others"), "300");
}

TEST_F(StatementHandlersTest, OldAndUnchangedValuesThatDidNotComeFailTheChange) {
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  h.describe("items", 'd');
  h.insert_one("items", {1, "one", 10});
  h.begin();
  h.update("items", {1, "one", 11});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10");
  EXPECT_EQ(
      h.select(
          "SELECT code, message LIKE 'UPDATE of \"public\".\"items\" (\"id\" = 1), commit LSN %: statement handler 1: "
          ":old.amount did not come with the change; REPLICA IDENTITY FULL %' FROM thalweg.error_queue"),
      "apply_failed|t");
}

TEST_F(StatementHandlersTest, TheKeyIsKnownWithoutTheOldRow) {
  handle_by({handler(HandlerTime::after,
                     "INSERT INTO public.audit (operation, id, new_amount) VALUES "
                     "(:operation, :old.id, :new.amount)")});
  h.describe("items", 'd');
  h.insert_one("items", {1, "one", 10});
  h.begin();
  h.update("items", {1, "one", 11});
  h.update_key("items", {1, nullptr, nullptr}, {2, "one", 12});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kAudited), "INSERT|NULL|NULL|10,UPDATE|1|NULL|11,UPDATE|1|NULL|12");
  EXPECT_EQ(h.select(kRows), "2|one|12");
}

TEST_F(StatementHandlersTest, AnUnchangedValueIsThatOfTheOldRowOrUnknown) {
  handle_by({handler(HandlerTime::after, "INSERT INTO public.audit (operation, id) VALUES (:new.name, :new.id)")});
  h.insert_one("items", {1, "large", 10});
  h.begin();
  h.update_full("items", {1, "large", 10}, {1, Unchanged{}, 11});
  h.commit();
  h.describe("items", 'd');
  h.begin();
  h.update("items", {1, Unchanged{}, 12});
  h.commit();
  finish();
  EXPECT_EQ(h.select("SELECT operation, id FROM audit ORDER BY number"), "large|1,large|1");
  EXPECT_EQ(h.select(kRows), "1|large|11");
  EXPECT_EQ(h.select("SELECT message LIKE '%:new.name did not come with the change, which left it as it was%' FROM "
                     "thalweg.error_queue"),
            "t");
}

TEST_F(StatementHandlersTest, WhatTheStatementIsRefusedFailsTheTransactionWithAnErrorOfItsOwn) {
  h.run("ALTER TABLE audit ADD CHECK (new_amount < 100), ADD UNIQUE (id)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit),
             handler(HandlerTime::precommit, "SELECT 1 / (count(*) - 4) FROM public.items")});
  h.insert_one("items", {1, "one", 10});
  h.begin();
  h.insert("items", {2, "two", 20});
  h.insert("items", {3, "three", 300});
  h.commit();
  h.run("INSERT INTO audit (id) VALUES (4)");
  h.insert_one("items", {4, "no conflict of the row", 40});
  h.insert_one("items", {5, "five", 50});
  h.insert_one("items", {6, "six", 60});
  h.insert_one("items", {7, "the fourth", 70});
  h.parameters.conflict_handlers = {{.kind = ConflictKind::insert_exists, .action = ConflictAction::discard}};
  finish();
  EXPECT_EQ(h.select("SELECT id FROM items ORDER BY id"), "1,5,6");
  EXPECT_EQ(h.select("SELECT id FROM audit WHERE operation = 'INSERT' ORDER BY id"), "1,5,6");
  EXPECT_EQ(h.select(kQueue), "apply_failed|23514,apply_failed|23505,apply_failed|22012");
  EXPECT_EQ(
      h.select(
          "SELECT message LIKE '%statement handler 1: %' AND message LIKE 'INSERT into \"public\".\"items\"%' FROM "
          "thalweg.error_queue ORDER BY commit_lsn LIMIT 2"),
      "t,t");
  EXPECT_EQ(h.select("SELECT message LIKE 'at the end of the transaction, commit LSN %: statement handler 2: division "
                     "by zero%' FROM thalweg.error_queue ORDER BY commit_lsn DESC LIMIT 1"),
            "t");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.conflict_log"), "0");
}

TEST_F(StatementHandlersTest, SkippingTheRowLeavesItsStatementsOut) {
  h.run("ALTER TABLE audit ADD CHECK (new_amount < 100)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  h.parameters.error_policies = {{.error = "23514", .action = ErrorAction::skip}};
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 200});
  h.insert("items", {3, "three", 30});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,3|three|30");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10,INSERT|3|NULL|30");
  EXPECT_EQ(h.select("SELECT kind, sqlstate, action FROM thalweg.conflict_log"), "|23514|skip");
}

TEST_F(StatementHandlersTest, FollowRowsThatAHandlerOfConflictsHasWritten) {
  h.run("INSERT INTO items VALUES (1, 'here', 1), (2, 'here', 2)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  h.parameters.conflict_handlers = {{.kind = ConflictKind::insert_exists, .action = ConflictAction::overwrite},
                                    {.kind = ConflictKind::update_missing, .action = ConflictAction::discard}};
  h.begin();
  h.insert("items", {1, "one", 10});
  h.update_full("items", {9, "nine", 90}, {9, "nine", 91});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,2|here|2");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10") << "the overwritten one, not the discarded one";
}

TEST_F(StatementHandlersTest, AMaximumThatWinsIsFollowedToo) {
  h.run("INSERT INTO items VALUES (1, 'here', 1), (2, 'here', 200)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  h.parameters.conflict_handlers = {
      {.kind = ConflictKind::insert_exists, .table = kQuoted, .action = ConflictAction::maximum, .by = "amount"}};
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 20});
  h.insert("items", {3, "three", 30});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,2|here|200,3|three|30");
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10,INSERT|3|NULL|30");
}

TEST_F(StatementHandlersTest, AParkedTransactionIsExecutedWithThem) {
  h.run("ALTER TABLE items ADD CONSTRAINT few CHECK (amount < 100)");
  h.run("CREATE TABLE commits (xid bigint)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit),
             handler(HandlerTime::precommit, "INSERT INTO public.commits VALUES (:xid)")});
  h.insert_one("items", {1, "one", 1000});
  h.insert_one("items", {2, "two", 20});
  finish();
  EXPECT_EQ(h.select(kAudited), "INSERT|2|NULL|20") << "what follows does not wait for a parked transaction";
  EXPECT_EQ(h.select("SELECT count(*) FROM commits"), "1");
  const int64_t id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"));
  auto connection = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(connection);
  const auto tried = dry_run_parked(std::move(*connection), "teststream", id, {}, h.parameters.statement_handlers);
  ASSERT_TRUE(tried && tried->error);
  h.run("ALTER TABLE items DROP CONSTRAINT few");
  const auto executed = h.execute_error(id);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select(kRows), "1|one|1000,2|two|20");
  EXPECT_EQ(h.select(kAudited), "INSERT|2|NULL|20,INSERT|1|NULL|1000");
  EXPECT_EQ(h.select("SELECT count(*) FROM commits"), "2");
}

TEST_F(StatementHandlersTest, ASpilledTransactionHasThemToo) {
  h.parameters.txn_lcr_spill_threshold = 100;
  h.run("CREATE TABLE commits (xid bigint)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit),
             handler(HandlerTime::precommit, "INSERT INTO public.commits VALUES (:xid)")});
  h.begin();
  for (int64_t i = 0; i < 3000; ++i) h.insert("items", {i, "n", i});
  h.commit();
  finish();
  EXPECT_EQ(h.select("SELECT count(*), sum(new_amount) FROM audit"), "3000|4498500");
  EXPECT_EQ(h.select("SELECT count(*) FROM commits"), "1");
}

TEST_F(StatementHandlersTest, WhatTheInitialCopyHasIsNoChange) {
  h.run("CREATE TABLE commits (xid bigint)");
  handle_by({handler(HandlerTime::after, kInsertIntoAudit),
             handler(HandlerTime::precommit, "INSERT INTO public.commits VALUES (:xid)")});
  h.run("INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20)");
  const base::Lsn first = h.insert_one("items", {1, "one", 10});
  const base::Lsn second = h.insert_one("items", {2, "two", 20});
  h.insert_one("items", {3, "three", 30});
  h.catch_up = {
      {.schema_name = "public", .table_name = "items", .copied_from = second, .copied_to = {second.value + 1}}};
  ASSERT_LT(first, second);
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,2|two|20,3|three|30");
  EXPECT_EQ(h.select(kAudited), "INSERT|2|NULL|20,INSERT|3|NULL|30") << "during the copy each change counts";
  EXPECT_EQ(h.select("SELECT count(*) FROM commits"), "2");
}

TEST_F(StatementHandlersTest, AColumnThatIsNotThereStopsTheApply) {
  h.parameters.disable_on_error = true;
  handle_by({handler(HandlerTime::after, "SELECT :new.nothing")});
  h.insert_one("items", {1, "one", 10});
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::destination_table_differs);
  EXPECT_NE(error->message.find("statement handler 1 names :new.nothing"), std::string::npos) << error->message;
}

TEST_F(StatementHandlersTest, AnAlteredTableOfAStatementIsPlannedAnew) {
  handle_by(
      {handler(HandlerTime::after, "INSERT INTO public.audit (operation, id) VALUES ('x', :new.id) RETURNING *")});
  ASSERT_TRUE(h.start());
  const base::Lsn first = h.insert_one("items", {1, "one", 10});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied({first.value + 1}));
  h.run("ALTER TABLE audit ADD note text");
  h.insert_one("items", {2, "two", 20});
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kAudited), "x|1|NULL|NULL,x|2|NULL|NULL");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(StatementHandlersTest, AChangedTypeOfAColumnIsFollowed) {
  handle_by({handler(HandlerTime::after, kInsertIntoAudit)});
  ASSERT_TRUE(h.start());
  const base::Lsn first = h.insert_one("items", {1, "one", 10});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied({first.value + 1}));
  h.run("ALTER TABLE items ADD other int");
  h.insert_one("items", {2, "two", 20});
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kAudited), "INSERT|1|NULL|10,INSERT|2|NULL|20");
}

}  // namespace
}  // namespace thalweg::apply
