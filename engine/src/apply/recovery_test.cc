#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "apply/applier/progress_writer.h"
#include "apply/apply.h"
#include "apply/apply_harness.h"
#include "apply/progress_recovery.h"

// Exactly once, whatever ends an apply; order under each commit_serialization; the error queue; catch-up.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";

// Inserts, updates and deletes of few rows, so that transactions depend on each other. Nothing in it may be applied
// twice or left out without a conflict: every update and delete needs its row, every insert its absence.
void write_history(ApplyHarness& h, int transactions, unsigned seed) {
  std::mt19937 random(seed);
  std::map<int, int> rows;
  for (int i = 0; i < transactions; ++i) {
    h.begin();
    const int changes = 1 + static_cast<int>(random() % 5);
    for (int change = 0; change < changes; ++change) {
      const int id = static_cast<int>(random() % 200);
      if (!rows.contains(id)) {
        rows[id] = i;
        h.insert("items", {id, "i", i});
      } else if (random() % 3 == 0) {
        rows.erase(id);
        h.remove("items", {id, nullptr, nullptr});
      } else {
        rows[id] = i;
        h.update("items", {id, Unchanged{}, i});
      }
    }
    h.insert("log", {i, i});
    h.commit();
  }
  h.begin();
  for (int i = 0; i < 10; ++i) h.insert("log", {1'000'000 + i, i});
  h.commit();
}

void expect_same_as_source(ApplyHarness& h, int transactions, unsigned seed) {
  std::mt19937 random(seed);
  std::map<int, int> rows;
  for (int i = 0; i < transactions; ++i) {
    const int changes = 1 + static_cast<int>(random() % 5);
    for (int change = 0; change < changes; ++change) {
      const int id = static_cast<int>(random() % 200);
      if (!rows.contains(id)) {
        rows[id] = i;
      } else if (random() % 3 == 0) {
        rows.erase(id);
      } else {
        rows[id] = i;
      }
    }
  }
  std::string expected;
  for (const auto& [id, amount] : rows)
    expected += (expected.empty() ? "" : ",") + std::to_string(id) + "|" + std::to_string(amount);
  EXPECT_EQ(h.select("SELECT id, amount FROM items ORDER BY id"), expected);
  EXPECT_EQ(h.select("SELECT count(*) FROM log"), std::to_string(transactions + 10));
}

class CommitSerializations : public testing::TestWithParam<CommitSerialization> {};

TEST_P(CommitSerializations, SurviveAbruptEnds) {
  constexpr int kTransactions = 1500;
  ApplyHarness h;
  h.parameters.commit_serialization = GetParam();
  h.parameters.group_size = 40;
  h.run(kItems);
  h.run("CREATE TABLE log (id int PRIMARY KEY, x int)");
  h.describe("items");
  h.describe("log");
  const unsigned seed = 7;
  write_history(h, kTransactions, seed);
  std::mt19937 random(seed);
  base::Lsn last{};
  for (int round = 0; round < 6; ++round) {
    const auto started = h.start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_GE(*started, last);
    last = *started;
    h.feed(random() % h.history_size());
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    EXPECT_FALSE(h.apply().status().error) << h.apply().status().error->message;
    EXPECT_LE(h.apply().status().confirmed, h.apply().status().applied);
    h.stop_abruptly();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  expect_same_as_source(h, kTransactions, seed);
}

TEST_P(CommitSerializations, SurviveKilledBackends) {
  constexpr int kTransactions = 1000;
  ApplyHarness h;
  h.parameters.commit_serialization = GetParam();
  h.parameters.group_size = 30;
  h.run(kItems);
  h.run("CREATE TABLE log (id int PRIMARY KEY, x int)");
  h.describe("items");
  h.describe("log");
  write_history(h, kTransactions, 11);
  for (int round = 0; round < 4; ++round) {
    const auto started = h.start();
    ASSERT_TRUE(started) << started.error().message;
    h.feed(h.history_size() / 5 * static_cast<size_t>(round + 1));
    h.select(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid()");
    for (int i = 0; i < 1000 && h.apply().status().running; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(h.apply().status().running);
    ASSERT_TRUE(h.apply().status().error);
    EXPECT_EQ(base::class_of(h.apply().status().error->code), base::ErrorClass::transient)
        << h.apply().status().error->message;
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  expect_same_as_source(h, kTransactions, 11);
}

INSTANTIATE_TEST_SUITE_P(All, CommitSerializations,
                         testing::Values(CommitSerialization::full, CommitSerialization::dependent_transactions,
                                         CommitSerialization::none));

TEST(CommitOrder, FullCommitsInTheSourcesOrder) {
  constexpr int kTransactions = 3000;
  ApplyHarness h;
  h.parameters.commit_serialization = CommitSerialization::full;
  h.parameters.group_size = 3;
  h.run("CREATE TABLE log (id int PRIMARY KEY, x int)");
  h.describe("log");
  for (int i = 0; i < kTransactions; ++i) h.insert_one("log", {i, i});
  ASSERT_TRUE(h.start());
  std::thread feeder([&h] { h.feed(); });
  // Whenever one looks, the rows that are there are the first ones of the history, none missing in between.
  std::string gaps;
  int looks = 0;
  while (h.apply().status().running && h.apply().status().applied < h.end()) {
    const std::string seen = h.select("SELECT count(*), coalesce(max(id) + 1, 0) FROM log");
    if (seen.substr(0, seen.find('|')) != seen.substr(seen.find('|') + 1)) gaps += seen + " ";
    ++looks;
  }
  feeder.join();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_GT(looks, 1);
  EXPECT_EQ(gaps, "");
  EXPECT_EQ(h.select("SELECT count(*) FROM log"), std::to_string(kTransactions));
}

TEST(CommitOrder, ALockHeldByALaterGroupIsGivenBack) {
  // A unique value that no hash covers (an expression index): the second group takes it while the first still runs.
  ApplyHarness h;
  h.parameters.commit_serialization = CommitSerialization::full;
  h.parameters.group_size = 1;
  h.run("CREATE TABLE words (id int PRIMARY KEY, word text)");
  h.run("CREATE UNIQUE INDEX ON words (lower(word))");
  h.describe("words");
  for (int i = 0; i < 200; ++i) {
    h.begin();
    h.insert("words", {i, "word"});
    h.commit();
    h.begin();
    h.remove("words", {i, nullptr});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM words"), "0");
}

TEST(StreamLock, ASecondApplyIsRefused) {
  ApplyHarness h;
  ASSERT_TRUE(h.start());
  base::SystemClock clock;
  queue::LcrQueue queue({});
  queue::QueueFrames frames(queue, 0);
  Apply second({.stream_id = "teststream",
                .destination_conninfo = h.conninfo(),
                .frames = &frames,
                .parameters = {},
                .spill_directory = std::filesystem::temp_directory_path() / "thalweg_second_apply",
                .catch_up = {},
                .clock = &clock});
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::stream_in_use);
  // The error names the holder: a server process that an operator can look up, or end.
  const std::string holder = h.select(
      "SELECT 'server process ' || pid || ' of user postgres' FROM pg_stat_activity WHERE application_name LIKE "
      "'thalweg teststream progress%' AND datname = current_database() AND pid IN (SELECT pid FROM pg_locks WHERE "
      "locktype = 'advisory' AND granted)");
  EXPECT_NE(started.error().message.find(holder), std::string::npos) << started.error().message << ", " << holder;
}

TEST(StreamLock, AnUnregisteredStreamIsRefused) {
  ApplyHarness h;
  ASSERT_TRUE(forget_stream(h.connection(), "teststream"));
  EXPECT_EQ(h.select("SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'"), "0");
  const auto started = h.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::unknown_stream);
}

class ProgressRow : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BothWays, ProgressRow, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "data_layer" : "sql"; });

// Its successor has read the progress, and has appliers of the same numbers.
TEST_P(ProgressRow, OfAnEarlierEpochIsNotFound) {
  ApplyHarness h;
  h.run("DROP INDEX thalweg.apply_progress_epoch");  // the schema is an older engine's
  if (GetParam()) h.run("CREATE EXTENSION thalweg_datalayer");
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "one", 1});
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(h.counter("APPLY SERVER", "data_layer_calls"), GetParam() ? 1U : 0U);
  const auto recovered = recover_progress(h.connection(), "teststream");
  ASSERT_TRUE(recovered) << recovered.error().message;
  h.run(
      fmt::format("INSERT INTO thalweg.apply_progress SELECT 'teststream', n, {}, '0/0', '' FROM "
                  "generate_series(1, 64) n",
                  recovered->epoch));
  h.insert_one("items", {2, "two", 2});
  const auto error = h.finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::stream_in_use) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM items"), "1");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.apply_progress WHERE low_watermark > '0/0' AND applier > 0"), "0");
}

// A lookup of the row passes the versions that an old snapshot keeps, but only those under the row's newest number.
TEST_P(ProgressRow, TakesANewNumberEverySoOften) {
  constexpr int kTransactions = 5 * ProgressWriter::kVersionsMax;
  ApplyHarness h;
  if (GetParam()) h.run("CREATE EXTENSION thalweg_datalayer");
  h.run(kItems);
  h.describe("items");
  h.parameters.parallelism = 1;
  h.parameters.group_size = 1;
  for (int id = 1; id <= kTransactions; ++id) h.insert_one("items", {id, "x", id});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  // The applier's two rows have shared the transactions, so that each may lack almost a number's worth of versions.
  EXPECT_EQ(h.select(fmt::format("SELECT count(*), sum((applier - 1) / {}) >= 3 FROM thalweg.apply_progress "
                                 "WHERE applier > 0",
                                 ProgressWriter::kRowsMax)),
            "2|t");
  EXPECT_EQ(h.counter("APPLY SERVER", "fallbacks"), 0U);
  h.stop_abruptly();
  const auto error = h.start_and_finish();  // gets all of them again
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), sum(amount) FROM items"),
            fmt::format("{}|{}", kTransactions, kTransactions * (kTransactions + 1) / 2));
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue"), "0");
}

// One transaction of a group fails: they are executed singly, and the progress is written with each. A range for each
// would make every commit dearer than the one before.
TEST(Progress, OfAGroupThatIsExecutedSinglyIsOneRange) {
  ApplyHarness h;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (80, 'theirs', 0), (1000, 'last', 0)");
  h.describe("items");
  for (int i = 0; i < 100; ++i) {
    h.begin();
    h.insert("items", {i, "ours", i});
    h.update("items", {1000, Unchanged{}, i});  // each depends on the one before
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->sqlstate, "23505");
  EXPECT_EQ(h.select("SELECT count(*) FROM items WHERE name = 'ours'"), "80");
  EXPECT_EQ(h.select("SELECT max(octet_length(ranges)) <= 32 FROM thalweg.apply_progress"), "t")
      << h.select("SELECT octet_length(ranges) FROM thalweg.apply_progress");
}

TEST(ErrorQueue, ParksWithDependantsAndExecutesAgain) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run(kItems);
  h.describe("items");
  h.insert_one("items", {1, "one", 1});
  h.begin();
  h.update("items", {5, "missing", 5});  // no such row
  h.insert("items", {6, "six", 6});
  h.commit();
  h.begin();
  h.update("items", {6, "six again", 66});  // depends on the parked one
  h.commit();
  h.begin();
  h.update("items", {1, "uno", 11});  // does not
  h.commit();
  auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "1|uno|11");
  EXPECT_EQ(h.apply().parked_transactions(), 2U);
  auto parked = list_parked(h.connection(), "teststream");
  ASSERT_TRUE(parked) << parked.error().message;
  ASSERT_EQ(parked->size(), 2U);
  EXPECT_EQ((*parked)[0].code, "apply_conflict");
  EXPECT_EQ((*parked)[0].lcrs, 2U);
  EXPECT_EQ((*parked)[0].tables, std::vector<std::string>{"\"public\".\"items\""});
  EXPECT_EQ((*parked)[1].code, "parked_behind");

  // After a restart the rest of the chain is still held back.
  h.begin();
  h.update("items", {6, "third", 666});
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  EXPECT_EQ(h.apply().parked_transactions(), 3U);
  const auto refused = h.execute_error((*parked)[0].id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::apply_conflict);
  const auto behind = h.execute_error((*parked)[1].id);
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().code, ErrorCode::parked_behind);
  EXPECT_EQ(list_parked(h.connection(), "teststream", {.roots_only = true})->size(), 1U);
  const auto second = list_parked(h.connection(), "teststream", {.after = (*parked)[0].id, .limit = 1});
  ASSERT_EQ(second->size(), 1U);
  EXPECT_EQ((*second)[0].id, (*parked)[1].id);
  h.run("INSERT INTO items VALUES (5, 'here now', 0)");
  const auto executed = h.execute_error((*parked)[0].id);
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "1|uno|11,5|missing|5,6|third|666");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue"), "0");
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue_chunk"), "0");
  // And what comes then is applied again.
  h.begin();
  h.update("items", {6, "fourth", 6});
  h.commit();
  error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 6"), "fourth");
  EXPECT_EQ(remove_parked(h.connection(), "teststream", 12345).error().code, ErrorCode::unknown_error_transaction);
}

// Parents 1 and 2, and no children. A transaction of more than five rows is spilled.
void make_family(ApplyHarness& h) {
  h.parameters.disable_on_error = false;
  h.parameters.txn_lcr_spill_threshold = 5;
  h.run("CREATE TABLE parents (id int PRIMARY KEY, x int); INSERT INTO parents VALUES (1, 0), (2, 0)");
  h.run("CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents, x int)");
  h.describe("parents");
  h.describe("children");
}

// A spilled transaction stands for whole tables: rows that it may be the parent of wait behind it.
TEST(ErrorQueue, ChildrenWaitBehindASpilledParent) {
  ApplyHarness h;
  make_family(h);
  h.insert_one("children", {1, 1, 0});
  h.begin();
  for (int id = 10; id < 20; ++id) h.insert("parents", {id, 0});
  h.update("parents", {99, 0});  // no such row
  h.commit();
  h.insert_one("children", {2, 15, 0});
  auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM children"), "1");
  EXPECT_EQ(h.select("SELECT code, lcrs FROM thalweg.error_queue ORDER BY commit_lsn"),
            "apply_conflict|11,parked_behind|1");
  h.run("INSERT INTO parents VALUES (99, 0)");
  const auto executed = h.execute_error(std::stoll(h.select("SELECT min(id) FROM thalweg.error_queue")));
  ASSERT_TRUE(executed) << executed.error().message;
  EXPECT_EQ(h.select("SELECT id FROM children ORDER BY id"), "1,2");
}

// And the other way round; what keeps the parents' keys goes on. The queue is an older engine's meanwhile.
TEST(ErrorQueue, ParentsStayWhileASpilledChildIsParked) {
  ApplyHarness h;
  make_family(h);
  h.begin();
  for (int id = 10; id < 20; ++id) h.insert("children", {id, 1, 0});
  h.update("children", {99, 1, 0});  // no such row
  h.commit();
  h.begin();
  h.update("parents", {1, 7});
  h.commit();
  h.begin();
  h.remove("parents", {2, nullptr});
  h.commit();
  auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, x FROM parents ORDER BY id"), "1|7,2|0");
  EXPECT_EQ(h.apply().parked_transactions(), 2U);
  h.run("ALTER TABLE thalweg.error_queue DROP COLUMN parent_hashes, DROP COLUMN referenced_hashes");
  ASSERT_TRUE(h.start());
  EXPECT_EQ(h.select("SELECT count(*) FROM thalweg.error_queue WHERE referenced_hashes = table_hashes"), "2");
  h.run("INSERT INTO children VALUES (99, 1, 0)");
  const auto executed = h.execute_error(std::stoll(h.select("SELECT min(id) FROM thalweg.error_queue")));
  ASSERT_TRUE(executed) << executed.error().message;
  const auto rest = h.execute_error(std::stoll(h.select("SELECT min(id) FROM thalweg.error_queue")));
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(h.select("SELECT id FROM parents"), "1");
  error = h.finish();
  ASSERT_FALSE(error) << error->message;
}

TEST(CatchUp, AppliesWhatTheCopyMayHaveIdempotently) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  const base::Lsn before = h.insert_one("items", {1, "copied", 1});
  const base::Lsn from = h.insert_one("items", {2, "v1", 1});
  h.begin();
  h.update("items", {2, "v2", 2});
  h.update_key("items", {2, nullptr, nullptr}, {3, "v3", 3});
  h.insert("items", {4, "short-lived", 4});
  h.commit();
  h.begin();
  h.update("items", {4, Unchanged{}, 44});
  h.remove("items", {4, nullptr, nullptr});
  h.remove("items", {1, nullptr, nullptr});
  h.commit();
  const base::Lsn to = h.insert_one("items", {7, "after", 7});
  // The copy was taken somewhere in between: it has all of the span, or nothing of it.
  ASSERT_LT(before, from);
  h.catch_up = {{.schema_name = "public", .table_name = "items", .copied_from = from, .copied_to = to}};
  h.run("INSERT INTO items VALUES (3, 'v3', 3)");
  auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "3|v3|3,7|after|7");
}

TEST(ErrorQueue, ParksAValueThatDoesNotFit) {
  ApplyHarness h;
  h.parameters.disable_on_error = false;
  h.run("CREATE TYPE pair AS (a int, b text)");
  h.run("CREATE TYPE outer_pair AS (p pair)");
  h.run("CREATE TABLE pairs (id int PRIMARY KEY, p outer_pair)");
  h.describe("pairs");
  h.insert_one("pairs", {1, "not a composite"});
  h.insert_one("pairs", {2, nullptr});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id FROM pairs"), "2");
  EXPECT_EQ(h.apply().parked_transactions(), 1U);
}

TEST(CatchUp, AppliesASpanThatTheCopyHasNothingOf) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  const base::Lsn from = h.insert_one("items", {2, "v1", 1});
  h.begin();
  h.update_key("items", {2, nullptr, nullptr}, {3, Unchanged{}, 3});
  h.remove("items", {1, nullptr, nullptr});
  const base::Lsn last = h.commit();
  h.catch_up = {{.schema_name = "public", .table_name = "items", .copied_from = from, .copied_to = {last.value + 1}}};
  h.run("INSERT INTO items VALUES (1, 'copied', 1)");
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "3|v1|3");
}

// The last transaction that comes had been applied ahead of the one before it when the apply ended.
TEST(Progress, PassesWhatWasThereAlready) {
  ApplyHarness h;
  h.parameters.group_size = 1;
  h.run(kItems);
  h.run("INSERT INTO items VALUES (1, 'one', 0)");
  h.describe("items");
  h.begin();
  h.update("items", {1, Unchanged{}, 1});
  h.commit();
  h.insert_one("items", {2, "two", 2});
  auto locker = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(locker);
  ASSERT_TRUE(locker->script("BEGIN; UPDATE items SET name = name WHERE id = 1"));
  ASSERT_TRUE(h.start());
  h.feed();
  const std::string ahead =
      "SELECT (SELECT count(*) FROM items WHERE id = 2), count(*) FROM pg_stat_activity "
      "WHERE datname = current_database() AND wait_event_type = 'Lock'";
  for (int i = 0; i < 1000 && h.select(ahead) != "1|1"; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(h.select(ahead), "1|1");
  h.select(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND wait_event_type = 'Lock'");
  for (int i = 0; i < 1000 && h.apply().status().running; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_FALSE(h.apply().status().running);
  ASSERT_TRUE(locker->script("ROLLBACK"));
  ASSERT_TRUE(h.start());
  h.feed();
  EXPECT_TRUE(h.wait_until_applied(h.end()));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, amount FROM items ORDER BY id"), "1|1,2|2");
}

TEST(Progress, FollowsAnIdleSource) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  h.insert_one("items", {1, "x", 1});
  h.progress();
  h.feed();
  ASSERT_TRUE(h.wait_until_applied(h.end()));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.apply().status().confirmed, h.end());
  const auto record = find_stream(h.connection(), "teststream");
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->low_watermark, h.end());
}

// A lock that somebody holds at the destination holds up no end: the session is given up, as if the engine had been
// killed, and its server process ends instead of waiting on.
TEST(Recovery, EndsAlthoughItsStatementWaitsForALock) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.insert_one("items", {1, "x", 1});
  auto blocker = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(blocker);
  ASSERT_TRUE(blocker->script("BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE"));
  ASSERT_TRUE(h.start());
  h.feed();
  const std::string waiting =
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  const auto becomes = [&](const char* value) {
    for (int i = 0; i < 3000 && h.select(waiting) != value; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return h.select(waiting) == value;
  };
  ASSERT_TRUE(becomes("t"));
  h.stop_abruptly();
  ASSERT_TRUE(becomes("f"));
  ASSERT_TRUE(blocker->script("ROLLBACK"));
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "0");
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items"), "1|x|1");
}

}  // namespace
}  // namespace thalweg::apply
