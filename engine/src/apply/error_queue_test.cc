#include "apply/error_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apply/apply_harness.h"

// Operators' actions on the error queue; recovery_test.cc tests how transactions get into it.

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
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(opened);
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  const auto executed =
      execute_parked(std::move(*opened), "teststream", {.id = first},
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
  EXPECT_EQ((*roots)[0].code, "parked_freed");
}

std::string roots_of(ApplyHarness& h) {
  std::string text;
  const auto roots = list_parked(h.connection(), "teststream", {.roots_only = true});
  EXPECT_TRUE(roots) << roots.error().message;
  for (const auto& root : *roots) text += (text.empty() ? "" : ",") + std::to_string(root.id) + " " + root.code;
  const auto counts = count_parked(h.connection(), "teststream");
  EXPECT_EQ(counts->roots, roots->size());
  return text;
}

// Parks, in this order: one that has to do with no other; one of the rows 5 and 6; one of 5, that does not fit either;
// one of 6; another one of 6. Their ids are 1 to 5.
void park_five(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.parameters.parallelism = 1;  // they are parked one after the other
  h.run(kItems);
  h.run("INSERT INTO items VALUES (7, 'in the way', 0)");
  h.describe("items");
  h.begin();
  h.update("items", {1, "missing", 1});
  h.commit();
  h.begin();
  h.update("items", {5, "missing", 5});
  h.update("items", {6, "missing", 6});
  h.commit();
  h.begin();
  h.update("items", {5, "five again", 55});
  h.insert("items", {7, "seven", 7});
  h.commit();
  h.begin();
  h.update("items", {6, "six again", 66});
  h.commit();
  h.begin();
  h.update("items", {6, "six once more", 666});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  ASSERT_EQ(h.select("SELECT id, code FROM thalweg.error_queue ORDER BY commit_lsn"),
            "1|apply_conflict,2|apply_conflict,3|parked_behind,4|parked_behind,5|parked_behind");
}

// Only the roots need an operator's attention: a transaction stops waiting when the one before it is discarded.
TEST(ErrorQueue, WhatStoodBehindADiscardedOneWaitsForNoneAnyMore) {
  ApplyHarness h;
  park_five(h);
  EXPECT_EQ(roots_of(h), "1 apply_conflict,2 apply_conflict");
  ASSERT_TRUE(remove_parked(h.connection(), "teststream", 2));
  EXPECT_EQ(roots_of(h), "1 apply_conflict,3 parked_freed,4 parked_freed");
  h.run("INSERT INTO items VALUES (6, 'here now', 0)");
  ASSERT_TRUE(h.execute_error(4));
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 6"), "six once more") << "the last one follows";
  EXPECT_EQ(remove_parked(h.connection(), "teststream", 2).error().code, ErrorCode::unknown_error_transaction);
  EXPECT_EQ(roots_of(h), "1 apply_conflict,3 parked_freed");
}

TEST(ErrorQueue, WhatAnExecutionDoesNotReachWaitsForNoneAnyMore) {
  ApplyHarness h;
  park_five(h);
  h.run("INSERT INTO items VALUES (5, 'here now', 0), (6, 'here now', 0)");
  EXPECT_FALSE(h.execute_error(2)) << "the one behind it does not fit";
  EXPECT_EQ(h.select("SELECT string_agg(name, ',' ORDER BY id) FROM items WHERE id IN (5, 6)"), "missing,missing");
  EXPECT_EQ(roots_of(h), "1 apply_conflict,3 apply_conflict,4 parked_freed");
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
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(opened);
  const std::atomic<bool> abandon{true};
  const auto executed = execute_parked(std::move(*opened), "teststream",
                                       {.id = std::stoll(h.select("SELECT id FROM thalweg.error_queue"))},
                                       {.progress = {}, .abandon = &abandon});
  ASSERT_FALSE(executed);
  EXPECT_EQ(executed.error().code, ErrorCode::engine_stopping);
}

base::Result<void> execute_all(ApplyHarness& h, const ExecutionWatch& watch = {}) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  if (!opened) return std::unexpected(opened.error());
  return execute_parked(std::move(*opened), "teststream", {}, watch);
}

// A transaction that fails holds back those that wait behind it, and no others.
TEST(ErrorQueue, AllAreExecutedInCommitOrder) {
  ApplyHarness h;
  park_five(h);
  h.run("INSERT INTO items VALUES (5, 'here now', 0), (6, 'here now', 0)");
  std::vector<uint64_t> steps;
  const auto some = execute_all(h, {.progress = [&](uint64_t done, uint64_t total) {
                                  steps.push_back(done);
                                  EXPECT_EQ(total, 5U);
                                }});
  ASSERT_FALSE(some) << "1 has no row yet, and 7 is in the way of 3";
  EXPECT_EQ(some.error().code, ErrorCode::apply_conflict);
  EXPECT_NE(some.error().message.find("3 transactions were executed; 2 stay"), std::string::npos)
      << some.error().message;
  EXPECT_EQ(steps, (std::vector<uint64_t>{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 6"), "six once more");
  EXPECT_EQ(roots_of(h), "1 apply_conflict,3 apply_conflict");
  h.run("INSERT INTO items VALUES (1, 'here now', 0); DELETE FROM items WHERE id = 7");
  ASSERT_TRUE(execute_all(h));
  EXPECT_EQ(h.select("SELECT string_agg(name, ',' ORDER BY id) FROM items"), "missing,five again,six once more,seven");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue_chunk"), "0");
  EXPECT_TRUE(execute_all(h)) << "an empty queue has nothing that could fail";
}

// A trigger keeps a row from being written, which is no failure to the server: it must not be one after the commit.
TEST(ErrorQueue, WhatATriggerSuppressesIsNotTakenOutOfTheQueue) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (6, 'in the way', 0)");
  h.describe("items");
  h.begin();
  h.insert("items", {6, "six", 6});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  h.run(
      "DELETE FROM items; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
      "CREATE TRIGGER nothing BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION nothing(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER nothing");
  EXPECT_FALSE(execute_all(h));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue"), "1");
  h.run("DROP TRIGGER nothing ON items");
  ASSERT_TRUE(execute_all(h));
  EXPECT_EQ(h.select("SELECT name FROM items"), "six");
}

// Somebody who removes one that is read ahead already: it is not applied.
TEST(ErrorQueue, WhatIsRemovedMeanwhileIsNotApplied) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.describe("items");
  for (int id = 1; id <= 2; ++id) {
    h.begin();
    h.update("items", {id, "new", id});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  h.run("INSERT INTO items VALUES (1, 'old', 0), (2, 'old', 0)");
  const auto executed = execute_all(h, {.progress = [&](uint64_t done, uint64_t) {
                                      if (done == 1) h.run("DELETE FROM thalweg.error_queue");
                                    }});
  ASSERT_FALSE(executed);
  EXPECT_EQ(executed.error().code, ErrorCode::unknown_error_transaction);
  EXPECT_EQ(h.select("SELECT string_agg(name, ',' ORDER BY id) FROM items"), "new,old");
}

// As instantiation keeps them.
void make_copies(ApplyHarness& h) {
  h.run(
      "CREATE TABLE thalweg.stream_table (stream_id text, schema_name text, table_name text, copied_from pg_lsn, "
      "copied_to pg_lsn, copy_again boolean DEFAULT false, errors_discarded bigint DEFAULT 0)");
  h.run("CREATE TABLE thalweg.copy_range (stream_id text, schema_name text, table_name text)");
  h.run(
      "INSERT INTO thalweg.stream_table VALUES ('teststream', 'public', 'items', '0/0', '0/0'), "
      "('teststream', 'public', 'other', '0/0', '0/0')");
  h.run("INSERT INTO thalweg.copy_range VALUES ('teststream', 'public', 'items'), ('teststream', 'public', 'other')");
}

void copy_table_again(ApplyHarness& h, const std::string& table) {
  h.run(
      "UPDATE thalweg.stream_table SET (copied_from, copied_to, copy_again) = (SELECT max(commit_lsn) + 1, "
      "max(commit_lsn) + 1, false FROM thalweg.error_queue) WHERE table_name = '" +
      table + "'");
}

TEST(ErrorQueue, ACopyTakesOutWhatItHas) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.run("CREATE TABLE other (id int PRIMARY KEY, name text)");
  h.describe("items");
  h.describe("other");
  h.begin();
  h.update("items", {1, "items alone", 1});
  h.commit();
  h.begin();
  h.update("items", {2, "items", 2});
  h.update("other", {2, "and other"});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  make_copies(h);
  EXPECT_TRUE(discard_superseded(h.connection(), "teststream")->empty()) << "the copies are older";
  h.run(
      "UPDATE thalweg.stream_table SET copy_again = true, copied_from = NULL, copied_to = NULL WHERE table_name = "
      "'items'");
  EXPECT_TRUE(discard_superseded(h.connection(), "teststream")->empty()) << "it is not copied yet";
  const auto refused = execute_all(h);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::database_busy) << "what of it the copy will have is not known";
  copy_table_again(h, "items");
  const auto gone = discard_superseded(h.connection(), "teststream");
  ASSERT_TRUE(gone) << gone.error().message;
  ASSERT_EQ(gone->size(), 1U);
  EXPECT_EQ((*gone)[0].table, "\"public\".\"items\"");
  EXPECT_EQ((*gone)[0].transactions, 1U);
  EXPECT_EQ(h.select("SELECT tables FROM thalweg.error_queue"),
            "{\"\\\"public\\\".\\\"items\\\"\",\"\\\"public\\\".\\\"other\\\"\"}");
  EXPECT_EQ(h.select("SELECT table_name, errors_discarded FROM thalweg.stream_table ORDER BY 1"), "items|1,other|0");
  // Of the other one, the part that the copy does not have is left.
  h.run("INSERT INTO items VALUES (2, 'as copied', 20); INSERT INTO other VALUES (2, 'old')");
  ASSERT_TRUE(execute_all(h));
  EXPECT_EQ(h.select("SELECT items.name, other.name FROM items, other"), "as copied|and other");
}

// Until it is told, the apply goes on parking what follows.
TEST(ErrorQueue, WhatIsParkedMeanwhileIsExecutedToo) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (6, 'in the way', 0)");
  h.describe("items");
  h.begin();
  h.update("items", {5, "missing", 0});
  h.commit();
  h.begin();
  h.insert("items", {6, "of its own", 0});  // nobody mends it
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  int64_t amount = 0;
  const auto go_on = [&](bool is_parked) {
    h.begin();
    h.update("items", {5, "five", ++amount});
    h.commit();
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
    EXPECT_EQ(h.select("SELECT count(*) > 0 FROM thalweg.error_queue WHERE code = 'parked_behind'"),
              is_parked ? "t" : "f");
  };
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  const auto executed = execute_all(h, {.progress =
                                            [&](uint64_t done, uint64_t total) {
                                              steps.emplace_back(done, total);
                                              if (total == 2) go_on(true);  // before the apply is held
                                            },
                                        .hold_apply =
                                            [&] {
                                              h.apply().hold_for_errors(std::chrono::seconds(60));
                                              while (!h.apply().is_held()) std::this_thread::yield();
                                            },
                                        .go_on = [&] { h.apply().note_errors_changed(); }});
  ASSERT_FALSE(executed) << "6 is in the way of one of them";
  EXPECT_NE(executed.error().message.find("3 transactions were executed; 1 stay"), std::string::npos)
      << executed.error().message;
  EXPECT_EQ(steps.back(), (std::pair<uint64_t, uint64_t>{3, 4}));
  EXPECT_EQ(h.select("SELECT amount FROM items WHERE id = 5"), std::to_string(amount));
  EXPECT_EQ(h.select("SELECT code FROM thalweg.error_queue"), "apply_conflict");
  go_on(false);
  EXPECT_EQ(h.select("SELECT amount FROM items WHERE id = 5"), std::to_string(amount));
}

TEST(ErrorQueue, IsHeldWhileItIsExecuted) {
  ApplyHarness h;
  park_five(h);
  auto other = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(other);
  ASSERT_TRUE(hold_error_queue(*other, "teststream"));
  EXPECT_EQ(execute_all(h).error().code, ErrorCode::database_busy);
  EXPECT_TRUE(hold_error_queue(h.connection(), "another"));
}

// Anybody's table may have its name by then, in any shape, or none.
TEST(ErrorQueue, ChangesOfATableThatWasTakenOutOfTheStreamAreLeftOut) {
  for (const char* now :
       {"", "CREATE TABLE other (id int DEFAULT 3 PRIMARY KEY, name text)", "CREATE TABLE other (place point)"}) {
    ApplyHarness h;
    h.parameters.disable_on_error = false;
    h.run(kItems);
    h.run("CREATE TABLE other (id int PRIMARY KEY, name text); INSERT INTO items VALUES (1, 'in the way', 0)");
    h.describe("items");
    h.describe("other");
    h.begin();
    h.insert("items", {1, "one", 1});
    h.insert("other", {1, "of another table"});
    h.truncate("other");
    h.insert("other", {2, "of another table"});
    h.commit();
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
    make_copies(h);
    h.run("DELETE FROM thalweg.stream_table WHERE table_name = 'other'; DROP TABLE other");
    h.run(now);
    if (*now != '\0') h.run("INSERT INTO other DEFAULT VALUES");
    const std::string before = h.select("SELECT other::text FROM other");
    const auto failed = execute_all(h);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find(" already exists. 0 transactions were executed"), std::string::npos)
        << failed.error().message;
    h.run("DELETE FROM items");
    const auto executed = execute_all(h);
    ASSERT_TRUE(executed) << executed.error().message;
    EXPECT_EQ(h.select("SELECT name FROM items"), "one");
    EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue"), "0");
    EXPECT_EQ(h.select("SELECT other::text FROM other"), before);
  }
}

std::string causes_of(ApplyHarness& h) {
  std::vector<std::string> lines;
  const auto causes = parked_causes(h.connection(), "teststream");
  EXPECT_TRUE(causes) << causes.error().message;
  for (const auto& cause : *causes) {
    lines.push_back(
        fmt::format("{} {} {} {} {}\n", cause.transactions, cause.code, cause.sqlstate, cause.table, cause.object));
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string cause_of(ApplyHarness& h, const std::string& object) {
  const auto causes = parked_causes(h.connection(), "teststream");
  EXPECT_TRUE(causes) << causes.error().message;
  const auto found = std::ranges::find(*causes, object, &telemetry::ParkedCause::object);
  EXPECT_NE(found, causes->end()) << "no cause with " << object;
  return found == causes->end() ? "" : found->id;
}

// Parks for three causes, and one behind the second of them. Their ids are 1 to 6.
void park_three_causes(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.parameters.parallelism = 1;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (1, 'in the way', 0), (2, 'in the way', 0)");
  h.run("CREATE TABLE short (id int PRIMARY KEY, word varchar(9))");
  h.describe("items");
  h.describe("short");
  h.run("ALTER TABLE items ADD CONSTRAINT few CHECK (amount < 100); ALTER TABLE short ALTER word TYPE varchar(3)");
  const auto one_row = [&](const std::string& table, Row row) {
    h.begin();
    h.insert(table, std::move(row));
    h.commit();
  };
  one_row("items", {1, "one", 1});
  one_row("items", {2, "two", 2});
  one_row("items", {3, "three", 300});
  h.begin();
  h.update("items", {3, "three again", 3});
  h.commit();
  one_row("short", {1, "too long"});
  one_row("items", {4, "four", 400});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
}

TEST(ErrorQueue, IsGroupedByCause) {
  ApplyHarness h;
  park_three_causes(h);
  EXPECT_EQ(causes_of(h),
            "1 apply_failed 22001 \"public\".\"short\" character varying(3)\n"
            "1 parked_behind   \n"
            "2 apply_conflict 23505 \"public\".\"items\" items_pkey\n"
            "2 apply_failed 23514 \"public\".\"items\" few\n");
  EXPECT_EQ(list_parked(h.connection(), "teststream", {.cause = cause_of(h, "few")})->size(), 2U);
  EXPECT_EQ(list_parked(h.connection(), "teststream", {.cause = "0"})->size(), 0U);
}

// Transactions that wait behind one of them follow it; those that fail again are told one by one.
TEST(ErrorQueue, ThoseWithOneCauseAreExecutedTogether) {
  ApplyHarness h;
  park_three_causes(h);
  const std::string cause = cause_of(h, "few");
  h.run("ALTER TABLE items DROP CONSTRAINT few; INSERT INTO items VALUES (4, 'in the way', 0)");
  const auto execute = [&](std::vector<int64_t>& failed) {
    auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
    EXPECT_TRUE(opened);
    return execute_parked(std::move(*opened), "teststream", {.cause = cause},
                          {.progress = {}, .failed = [&](int64_t id, const base::Error&) { failed.push_back(id); }});
  };
  std::vector<int64_t> failed;
  const auto some = execute(failed);
  ASSERT_FALSE(some);
  EXPECT_NE(some.error().message.find("2 transactions were executed; 1 stay"), std::string::npos)
      << some.error().message;
  EXPECT_EQ(failed, std::vector<int64_t>{6});
  EXPECT_EQ(h.select("SELECT name, amount FROM items WHERE id > 2 ORDER BY id"), "three again|3,in the way|0");
  EXPECT_EQ(h.select("SELECT id FROM thalweg.error_queue ORDER BY id"), "1,2,5,6");
  EXPECT_EQ(h.select("SELECT sqlstate FROM thalweg.error_queue WHERE id = 6"), "23505") << "another cause by now";
  EXPECT_EQ(execute(failed).error().code, ErrorCode::unknown_error_transaction);
}

base::Result<DryRun> dry_run(ApplyHarness& h, int64_t id, const std::string& role = {}) {
  auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  if (!opened) return std::unexpected(opened.error());
  return dry_run_parked(std::move(*opened), "teststream", id, role);
}

TEST(ErrorQueue, ADryRunTellsTheOutcomeAndLeavesNothing) {
  ApplyHarness h;
  park_five(h);
  const std::string everything =
      "SELECT q::text, (SELECT string_agg(c::text, ',' ORDER BY chunk) FROM thalweg.error_queue_chunk c "
      "WHERE c.error_id = q.id), (SELECT string_agg(i::text, ',' ORDER BY i.id) FROM items i) "
      "FROM thalweg.error_queue q ORDER BY q.id";
  const std::string before = h.select(everything);
  const auto fails = dry_run(h, 2);
  ASSERT_TRUE(fails) << fails.error().message;
  ASSERT_TRUE(fails->error) << "there is no row";
  EXPECT_EQ(fails->error->code, ErrorCode::apply_conflict);
  EXPECT_NE(fails->error->message.find("\"id\" = 5"), std::string::npos) << fails->error->message;
  EXPECT_EQ(h.select(everything), before);
  h.run("INSERT INTO items VALUES (5, 'here now', 0), (6, 'here now', 0)");
  const std::string with_rows = h.select(everything);
  const auto succeeds = dry_run(h, 2);
  ASSERT_TRUE(succeeds) << succeeds.error().message;
  EXPECT_FALSE(succeeds->error) << succeeds->error->message;
  EXPECT_EQ(h.select(everything), with_rows);
  EXPECT_EQ(dry_run(h, 3).error().code, ErrorCode::parked_behind);
  EXPECT_EQ(dry_run(h, 99).error().code, ErrorCode::unknown_error_transaction);
  ASSERT_FALSE(h.execute_error(2)) << "what waits behind it does not fit";
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 5"), "missing") << "it went through, as told";
}

// The rows, and the triggers that they fire, now and at the commit; the error queue itself stays the session's.
TEST(ErrorQueue, ATransactionIsExecutedAsAnotherRole) {
  ApplyHarness h;
  park_five(h);
  const std::string clerk = "clerk " + h.select("SELECT current_database()");
  h.run(
      fmt::format("CREATE ROLE \"{0}\"; GRANT SELECT ON items TO \"{0}\"; "
                  "CREATE TABLE written (id serial, who name); GRANT INSERT ON written TO \"{0}\"; "
                  "GRANT USAGE ON SEQUENCE written_id_seq TO \"{0}\"; "
                  "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO "
                  "public.written (who) VALUES (current_user); RETURN NULL; END$$; "
                  "CREATE TRIGGER at_once AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION note(); "
                  "CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
                  "EXECUTE FUNCTION note(); "
                  "ALTER TABLE items ENABLE ALWAYS TRIGGER at_once; ALTER TABLE items ENABLE ALWAYS TRIGGER later; "
                  "INSERT INTO items VALUES (1, 'here now', 0)",
                  clerk));
  const auto execute_as = [&](const std::string& role) {
    auto opened = pg::Connection::open(h.conninfo(), {.search_path = "public"});
    EXPECT_TRUE(opened);
    return execute_parked(std::move(*opened), "teststream", {.id = 1, .role = role});
  };
  EXPECT_EQ(execute_as("nobody there").error().code, ErrorCode::invalid_request);
  EXPECT_EQ(dry_run(h, 1, "nobody there").error().code, ErrorCode::invalid_request);
  const auto tried = dry_run(h, 1, clerk);
  ASSERT_TRUE(tried) << tried.error().message;
  ASSERT_TRUE(tried->error) << "it may not write";
  EXPECT_EQ(tried->error->code, ErrorCode::apply_failed);
  EXPECT_EQ(tried->error->sqlstate, "42501");
  EXPECT_EQ(execute_as(clerk).error().code, ErrorCode::apply_failed) << "of this transaction: another role may";
  h.run(fmt::format("GRANT UPDATE ON items TO \"{}\"", clerk));
  EXPECT_FALSE(dry_run(h, 1, clerk)->error);
  const auto executed = execute_as(clerk);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 1"), "missing");
  EXPECT_EQ(h.select("SELECT who FROM written"), clerk + "," + clerk);
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue WHERE id = 1"), "0");
}

// A rollback alone would not check what a commit checks.
TEST(ErrorQueue, ADryRunChecksWhatIsDeferred) {
  ApplyHarness h;
  park_five(h);
  h.run(
      "INSERT INTO items VALUES (1, 'here now', 0); CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN RAISE ''not today''; END'; CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON items DEFERRABLE INITIALLY "
      "DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse(); ALTER TABLE items ENABLE ALWAYS TRIGGER refuse");
  const auto refused = dry_run(h, 1);
  ASSERT_TRUE(refused) << refused.error().message;
  ASSERT_TRUE(refused->error);
  EXPECT_NE(refused->error->message.find("not today"), std::string::npos) << refused->error->message;
  h.run("DROP TRIGGER refuse ON items");
  const auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_FALSE(tried->error);
}

// Statements of our own divide by zero, too, where a row of ours is gone.
TEST(ErrorQueue, ADivisionByZeroAtTheCommitIsTheDatas) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.run(
      "CREATE FUNCTION divide() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN PERFORM 1 / NEW.amount; RETURN NULL; END'; CREATE CONSTRAINT TRIGGER divide AFTER INSERT ON items "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION divide(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER divide");
  h.describe("items");
  h.insert_one("items", {1, "x", 0});
  h.insert_one("items", {2, "y", 1});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM items"), "2");
  EXPECT_EQ(h.select("SELECT sqlstate FROM thalweg.error_queue"), "22012");
  const auto tried = dry_run(h, 1);
  ASSERT_TRUE(tried) << tried.error().message;
  ASSERT_TRUE(tried->error);
  EXPECT_EQ(tried->error->sqlstate, "22012");
}

}  // namespace
}  // namespace thalweg::apply
