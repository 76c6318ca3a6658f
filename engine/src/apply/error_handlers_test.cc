#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "apply/error_queue.h"
#include "apply/statement_handler_fixture.h"

// Statements of users in the place of changes that fail; statement_handlers_test.cc tests the others.

namespace thalweg::apply {
namespace {

using base::ErrorCode;
using metadata::HandlerTime;
using metadata::StatementHandler;

constexpr const char* kItems =
    "CREATE TABLE items (id int PRIMARY KEY, name varchar(10) UNIQUE, amount bigint CONSTRAINT few CHECK (amount < "
    "100))";
constexpr const char* kQuoted = "\"public\".\"items\"";
constexpr const char* kRows = "SELECT id, name, amount FROM items ORDER BY id";
constexpr const char* kTold =
    "CREATE TABLE told (number bigserial, operation text, id int, sqlstate text, constraint_name text, kind text, "
    "error text)";
constexpr const char* kFromTold = "SELECT operation, id, sqlstate, constraint_name, kind FROM told ORDER BY number";
constexpr const char* kTell =
    "INSERT INTO public.told (operation, id, sqlstate, constraint_name, kind, error) "
    "VALUES (:operation, coalesce(:new.id, :old.id), :sqlstate, :constraint, :kind, :error)";
constexpr const char* kLog = "SELECT change, operation, kind, sqlstate, action FROM thalweg.conflict_log ORDER BY id";
constexpr const char* kQueue = "SELECT code, sqlstate FROM thalweg.error_queue ORDER BY commit_lsn";

StatementHandler handler(const std::string& statement, std::vector<std::string> errors = {},
                         HandlerTime time = HandlerTime::error, const std::string& table = kQuoted) {
  return {.table = table, .time = time, .errors = std::move(errors), .statement = bound(statement)};
}

StatementHandler note(const std::string& text, std::vector<std::string> errors = {}) {
  return handler("INSERT INTO public.told (operation, id) VALUES ('" + text + "', coalesce(:new.id, :old.id))",
                 std::move(errors));
}

class ErrorHandlers : public StatementHandlerFixture {
 protected:
  void SetUp() override {
    set_up(kItems);
    h.run(kTold);
  }
  base::Result<void> execute(int64_t id, const std::string& role) {
    auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
    if (!opened) return std::unexpected(opened.error());
    return execute_parked(std::move(*opened), "teststream", {.id = id, .role = role}, {},
                          h.parameters.statement_handlers);
  }
  uint64_t conflicts(ConflictKind kind) {
    uint64_t sum = 0;
    for (const auto& table : h.apply().tables()) sum += table.conflicts[static_cast<size_t>(kind)];
    return sum;
  }
};

TEST_F(ErrorHandlers, TakeThePlaceOfEachChangeThatFailsAndAreTold) {
  h.run("INSERT INTO items VALUES (2, 'here', 2), (12, 'there', 3)");
  handle_by({handler(kTell)});
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 20});
  h.insert("items", {3, "three", 300});
  h.insert("items", {4, "far too long", 40});
  h.update_full("items", {1, "one", 10}, {1, "there", 10});
  h.update_full("items", {9, "nine", 90}, {9, "nine", 91});
  h.remove_full("items", {8, "eight", 80});
  h.insert("items", {12, "here", 5});
  h.insert("items", {6, "six", 60});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,2|here|2,6|six|60,12|there|3");
  EXPECT_EQ(h.select(kFromTold),
            "INSERT|2|23505|items_pkey|insert_exists,INSERT|3|23514|few|NULL,INSERT|4|22001|NULL|NULL,"
            "UPDATE|1|23505|items_name_key|update_exists,UPDATE|9|NULL|NULL|update_missing,"
            "DELETE|8|NULL|NULL|delete_missing,INSERT|12|23505|items_pkey|multiple_unique_conflicts");
  EXPECT_EQ(h.select("SELECT error FROM told WHERE id = 9"),
            h.select("SELECT message FROM thalweg.conflict_log WHERE kind = 'update_missing'"));
  EXPECT_EQ(
      h.select("SELECT count(*) FROM told WHERE error LIKE 'INSERT into \"public\".\"items\" (\"id\" = 3), commit "
               "LSN %few%'"),
      "1");
  EXPECT_EQ(h.select(kLog),
            "2|INSERT|insert_exists|23505|statement,3|INSERT||23514|statement,4|INSERT||22001|statement,"
            "5|UPDATE|update_exists|23505|statement,6|UPDATE|update_missing||statement,"
            "7|DELETE|delete_missing||statement,8|INSERT|multiple_unique_conflicts|23505|statement");
  EXPECT_EQ(h.select("SELECT destination_row->>'name' FROM thalweg.conflict_log WHERE change = 2"), "here");
  EXPECT_EQ(h.select(kQueue), "");
  EXPECT_EQ(conflicts(ConflictKind::insert_exists), 1U);
  EXPECT_EQ(conflicts(ConflictKind::update_missing), 1U);
  EXPECT_EQ(h.apply().tables().at(0).inserts, 2U) << "a change that a handler has settled was not applied";
}

TEST_F(ErrorHandlers, AreForTheirErrorsOperationsAndTables) {
  h.parameters.parallelism = 1;  // they fail one after the other
  StatementHandler updates = note("of updates");
  updates.of_inserts = updates.of_deletes = false;
  handle_by({note("state", {"22001", "23503"}), note("class", {"22"}), note("code", {"apply_conflict"}), updates,
             handler("INSERT INTO public.told (operation) VALUES ('others')", {}, HandlerTime::error,
                     "\"public\".\"others\"")});
  h.insert_one("items", {1, "far too long", 10});
  h.begin();
  h.update_full("items", {2, "two", 20}, {2, "two", 21});
  h.commit();
  h.begin();
  h.remove_full("items", {3, "three", 30});
  h.commit();
  h.insert_one("items", {4, "four", 400});
  h.insert_one("others", {5, "five"});
  finish();
  EXPECT_EQ(h.select("SELECT operation, id FROM told ORDER BY number"), "state|1,class|1,code|2,of updates|2,code|3");
  EXPECT_EQ(h.select(kQueue), "apply_failed|23514") << "none is for that one";
  EXPECT_EQ(h.select("SELECT name FROM others"), "five");
}

TEST_F(ErrorHandlers, OfAnyTableHaveGeneralNamesOnly) {
  handle_by({handler("INSERT INTO public.told (operation, error) VALUES (:table, :schema || :sqlstate)", {"23514"},
                     HandlerTime::error, "")});
  h.insert_one("items", {1, "one", 1000});
  finish();
  EXPECT_EQ(h.select("SELECT operation, error FROM told"), "items|public23514");
}

TEST_F(ErrorHandlers, ComeBehindHandlersOfConflicts) {
  h.run("INSERT INTO items VALUES (1, 'here', 1), (2, 'other', 2)");
  handle_by({note("error")});
  h.parameters.conflict_handlers = {{.kind = ConflictKind::insert_exists, .action = ConflictAction::overwrite},
                                    {.kind = ConflictKind::delete_missing, .action = ConflictAction::discard},
                                    {.kind = ConflictKind::update_missing, .action = ConflictAction::error}};
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {3, "other", 30});  // collides by another key: no overwrite
  h.remove_full("items", {8, "eight", 80});
  h.update_full("items", {9, "nine", 90}, {9, "nine", 91});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|one|10,2|other|2");
  EXPECT_EQ(h.select("SELECT action, change FROM thalweg.conflict_log ORDER BY id"),
            "overwrite|1,statement|2,discard|3,statement|4");
  EXPECT_EQ(h.select("SELECT id FROM told ORDER BY number"), "3,9");
}

TEST_F(ErrorHandlers, OneThatCombinesNothingLeavesTheRowToThem) {
  h.run("INSERT INTO items VALUES (1, 'here', 1)");
  handle_by({note("error")});
  h.parameters.conflict_handlers = {{.kind = ConflictKind::insert_exists,
                                     .table = kQuoted,
                                     .action = ConflictAction::expression,
                                     .columns = {"amount"},
                                     .expression = "1 / (t.amount - 1)"}};
  h.insert_one("items", {1, "here", 10});
  finish();
  EXPECT_EQ(h.select("SELECT operation, id FROM told"), "error|1");
  EXPECT_EQ(h.select("SELECT action FROM thalweg.conflict_log"), "statement");
}

TEST_F(ErrorHandlers, MayMakeTheChangeInAnotherWay) {
  h.run("INSERT INTO items VALUES (1, 'here', 1)");
  handle_by({handler("INSERT INTO public.items VALUES (:new.id, left(:new.name, 10), least(:new.amount, 99)) "
                     "ON CONFLICT (id) DO UPDATE SET amount = items.amount + excluded.amount"),
             handler("SELECT 1 / 0", {}, HandlerTime::after)});
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "far too long", 20});
  h.insert("items", {3, "three", 300});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "1|here|11,2|far too lo|20,3|three|99")
      << "statements after the change do not follow one that is not made";
}

TEST_F(ErrorHandlers, ThatFailLeaveTheTransactionToThePolicyOfItsOwnError) {
  h.parameters.parallelism = 1;  // the first is parked before the second stops the apply
  handle_by({note("first"), handler("SELECT 1 / (:new.amount - 300)")});
  h.parameters.disable_on_error = true;
  h.parameters.error_policies = {{.error = "23514", .action = ErrorAction::park},
                                 {.error = "22001", .action = ErrorAction::skip}};
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 200});  // this is settled, but in vain
  h.insert("items", {3, "three", 300});
  h.commit();
  h.insert_one("items", {4, "far too long", 300});
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error) << "somebody wanted more than to leave it out";
  EXPECT_EQ(error->sqlstate, "22001");
  EXPECT_TRUE(error->message.ends_with("(10); statement handler 2: division by zero")) << error->message;
  EXPECT_EQ(h.select(kRows), "");
  EXPECT_EQ(h.select("SELECT count(*) FROM told"), "0");
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(
      h.select("SELECT sqlstate, failure->>'change', message LIKE 'INSERT into \"public\".\"items\" (\"id\" = 3), "
               "commit LSN %violates check constraint \"few\"%; statement handler 2: division by zero' FROM "
               "thalweg.error_queue"),
      "23514|3|t");
}

TEST_F(ErrorHandlers, AValueThatDidNotComeIsNotTakenForNull) {
  h.describe("items", 'd');
  handle_by({note("first"), handler("SELECT :old.amount")});
  h.begin();
  h.update("items", {1, "one", 11});
  h.commit();
  finish();
  EXPECT_EQ(h.select("SELECT code, message LIKE '%: the destination has no such row; statement handler 2: :old.amount "
                     "did not come with the change; REPLICA IDENTITY FULL %' FROM thalweg.error_queue"),
            "apply_conflict|t");
  EXPECT_EQ(h.select("SELECT count(*) FROM told"), "0");
}

TEST_F(ErrorHandlers, AreTriedOnceItsRetriesAreOver) {
  handle_by({note("error")});
  h.parameters.error_policies = {{.action = ErrorAction::retry, .times = 2, .after_retries = ErrorAction::stop}};
  h.insert_one("items", {1, "one", 1000});
  finish();
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_transactions"), 2U);
  EXPECT_EQ(h.select("SELECT operation, id FROM told"), "error|1");
}

TEST_F(ErrorHandlers, SettleWhatAnotherStatementFailsAt) {
  handle_by({handler("INSERT INTO public.others VALUES (:new.id, 'after')", {}, HandlerTime::after), handler(kTell)});
  h.run("INSERT INTO others VALUES (1, 'here')");
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 20});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kRows), "2|two|20");
  EXPECT_EQ(h.select(kFromTold), "INSERT|1|23505|others_pkey|NULL");
  EXPECT_EQ(h.select("SELECT error LIKE '%statement handler 1: %' FROM told"), "t");
}

TEST_F(ErrorHandlers, LeaveTheTableItsSets) {
  handle_by({note("error")});
  for (int64_t i = 0; i < 3000; ++i) h.insert_one("items", {i, std::to_string(i), 1});
  finish();
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "3000");
  EXPECT_GT(h.counter("APPLY SERVER", "sets"), 0U);
  EXPECT_EQ(h.counter("APPLY SERVER", "fallbacks"), 0U);
}

TEST_F(ErrorHandlers, LeaveTheTableTheDataLayerAndMerging) {
  h.run("CREATE EXTENSION thalweg_datalayer");
  handle_by({handler("INSERT INTO public.told (error) VALUES (:error)", {}, HandlerTime::error, "")});
  h.begin();
  h.insert("others", {1, "0"});
  for (int64_t i = 1; i <= 50; ++i) h.update("others", {1, std::to_string(i)});
  h.commit();
  finish();
  EXPECT_EQ(h.select("SELECT name FROM others"), "50");
  EXPECT_GT(h.counter("APPLY SERVER", "merged_updates"), 0U);
}

TEST_F(ErrorHandlers, ARowOfALargeGroupIsFoundAndSettled) {
  handle_by({note("error")});
  for (int64_t i = 0; i < 1000; ++i) h.insert_one("items", {i, std::to_string(i), i % 500 == 7 ? 1000 : 1});
  finish();
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "998");
  EXPECT_EQ(h.select("SELECT id FROM told ORDER BY id"), "7,507");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.conflict_log"), "2");
}

TEST_F(ErrorHandlers, AnAlteredTableOfAStatementIsPlannedAnew) {
  handle_by({handler("INSERT INTO public.told (operation, id) VALUES ('x', :new.id) RETURNING *")});
  ASSERT_TRUE(h.start());
  const base::Lsn first = h.insert_one("items", {1, "one", 1000});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied({first.value + 1}));
  h.run("ALTER TABLE told ADD note text");
  h.insert_one("items", {2, "two", 2000});
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM told ORDER BY number"), "1,2");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(ErrorHandlers, SettleChangesThatAreExecutedFromTheErrorQueue) {
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 200});
  h.commit();
  finish();
  EXPECT_EQ(h.select(kQueue), "apply_failed|23514");
  handle_by({handler(kTell)});
  const int64_t id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"));
  auto connection = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(connection);
  const auto tried = dry_run_parked(std::move(*connection), "teststream", id, {}, h.parameters.statement_handlers);
  ASSERT_TRUE(tried && !tried->error);
  EXPECT_EQ(tried->settled, 1U);
  EXPECT_EQ(h.select(kFromTold), "") << "a dry run leaves nothing";
  EXPECT_EQ(h.select(kLog), "");
  const auto executed = h.execute_error(id);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select(kRows), "1|one|10");
  EXPECT_EQ(h.select(kFromTold), "INSERT|2|23514|few|NULL");
  EXPECT_EQ(h.select(kLog), "2|INSERT||23514|statement");
  EXPECT_EQ(h.select("SELECT stream_id FROM thalweg.conflict_log"), "teststream");
  EXPECT_EQ(h.select(kQueue), "");
}

TEST_F(ErrorHandlers, RunAsTheRoleThatExecutesButTheLogDoesNot) {
  h.begin();
  h.insert("items", {1, "one", 100});
  h.insert("items", {2, "two", 20});
  h.insert("items", {3, "three", 300});
  h.commit();
  finish();
  const int64_t id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"));
  const std::string clerk = "errors " + h.select("SELECT current_database()");
  h.run("CREATE ROLE \"" + clerk + "\"; GRANT SELECT, INSERT ON items TO \"" + clerk + "\"");
  handle_by({handler("INSERT INTO public.told (operation, id) VALUES (current_user, :new.id)")});
  const auto refused = execute(id, clerk);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.find("permission denied for table told") != std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().code, ErrorCode::apply_failed);
  h.run("GRANT INSERT ON told TO \"" + clerk + "\"; GRANT USAGE ON SEQUENCE told_number_seq TO \"" + clerk + "\"");
  const auto executed = execute(id, clerk);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select("SELECT operation, id FROM told ORDER BY number"), clerk + "|1," + clerk + "|3");
  EXPECT_EQ(h.select("SELECT id FROM items"), "2");
  EXPECT_EQ(h.select("SELECT change, action FROM thalweg.conflict_log ORDER BY id"), "1|statement,3|statement");
}

TEST_F(ErrorHandlers, AFunctionThatResetsTheRoleFailsTheTransaction) {
  h.insert_one("items", {1, "one", 100});
  finish();
  const int64_t id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"));
  const std::string clerk = "errors " + h.select("SELECT current_database()");
  h.run("CREATE ROLE \"" + clerk + "\"; GRANT SELECT, INSERT ON items TO \"" + clerk + "\"");
  h.run("CREATE FUNCTION become() RETURNS void LANGUAGE plpgsql AS 'BEGIN RESET ROLE; END'");
  handle_by({handler("SELECT public.become()")});
  const auto refused = execute(id, clerk);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.find("has reset or changed the role") != std::string::npos)
      << refused.error().message;
  EXPECT_EQ(h.select(kLog), "");
}

}  // namespace
}  // namespace thalweg::apply
