#include "apply/apply.h"

#include <gtest/gtest.h>

#include "apply/apply_harness.h"
#include "apply/frame_blocks.h"

// The whole component: frames in, rows at a real destination out.

namespace thalweg::apply {
namespace {

using base::ErrorCode;

constexpr const char* kItems = "CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint)";

TEST(Apply, AppliesATransactionOfEachOperation) {
  const base::UnixMicros started = base::SystemClock().unix_now();
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.begin();
  h.insert("items", {1, "one", 10});
  h.insert("items", {2, "two", 20});
  h.insert("items", {3, nullptr, nullptr});
  h.commit();
  h.begin();
  h.update("items", {2, "zwei", 21});
  h.remove("items", {1, nullptr, nullptr});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT * FROM items ORDER BY id"), "2|zwei|21,3|NULL|NULL");
  EXPECT_EQ(h.apply().status().applied, h.end());
  EXPECT_EQ(h.apply().status().confirmed, h.end());
  const auto tables = h.apply().tables();
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].table_name, "items");
  EXPECT_EQ(tables[0].inserts, 3U);
  EXPECT_EQ(tables[0].updates, 1U);
  EXPECT_EQ(tables[0].deletes, 1U);
  ASSERT_TRUE(tables[0].last_change);
  EXPECT_GE(tables[0].last_change->at_source, started);
  EXPECT_GE(tables[0].last_change->at_destination, tables[0].last_change->at_source);
}

TEST(Apply, CommitsASingleTransactionAtOnce) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  ASSERT_TRUE(h.start());
  for (int i = 1; i <= 5; ++i) {
    h.insert_one("items", {i, "x", i});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end()));
    EXPECT_EQ(h.select("SELECT count(*) FROM items"), std::to_string(i));
  }
  EXPECT_EQ(h.counter("APPLY SERVER", "groups"), 5U);
}

TEST(Apply, ExecutesSetsWhenBehind) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  for (int i = 0; i < 3000; ++i) {
    h.begin();
    h.insert("items", {i, "n" + std::to_string(i), i});
    if (i >= 10) h.update("items", {i - 10, "u" + std::to_string(i), i});
    if (i >= 20 && i % 10 == 0) h.remove("items", {i - 20, nullptr, nullptr});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), min(id), max(id), sum(amount) FROM items"),
            h.select("SELECT count(*), min(id), max(id), sum(CASE WHEN id < 2990 THEN id + 10 ELSE id END) FROM "
                     "generate_series(0, 2999) id WHERE NOT (id % 10 = 0 AND id + 20 <= 2999)"));
  EXPECT_GT(h.counter("APPLY SERVER", "sets"), 0U);
  EXPECT_EQ(h.counter("APPLY SERVER", "fallbacks"), 0U);
  EXPECT_EQ(h.counter("APPLY SERVER", "transactions"), 3000U);
}

TEST(Apply, KeepsUnchangedColumns) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  for (const int rows : {1, 40}) {  // by row and in sets
    const int base = rows * 1000;
    h.begin();
    for (int i = 0; i < rows; ++i) h.insert("items", {base + i, "kept", 1});
    h.commit();
    h.begin();
    for (int i = 0; i < rows; ++i) h.update("items", {base + i, Unchanged{}, 2});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT name, amount, count(*) FROM items GROUP BY 1, 2"), "kept|2|41");
}

TEST(Apply, UpdatesKeys) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.begin();
  for (int i = 0; i < 30; ++i) h.insert("items", {i, "n", i});
  for (int i = 29; i >= 0; --i) h.update_key("items", {i, nullptr, nullptr}, {i + 1, "moved", i});
  h.commit();
  h.begin();
  h.update_key("items", {1, nullptr, nullptr}, {100, Unchanged{}, 7});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), min(id), max(id) FROM items"), "30|2|100");
  EXPECT_EQ(h.select("SELECT * FROM items WHERE id = 100"), "100|moved|7");
}

TEST(Apply, DiscardsAbortedSubtransactions) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.begin(true);
  const auto first = h.xid();
  h.insert("items", {1, "kept", 1});
  h.insert("items", {2, "gone", 1}, {901});
  h.begin(true);
  const auto second = h.xid();
  h.insert("items", {3, "gone", 1});
  h.switch_to(first);
  h.insert("items", {4, "kept", 1}, {902});
  h.abort({901});
  h.switch_to(second);
  h.abort(second);
  h.commit_streamed(first);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, name FROM items ORDER BY id"), "1|kept,4|kept");
  EXPECT_EQ(h.counter("APPLY READER", "aborted_transactions"), 1U);
}

// A loop with an exception handler makes as many: looking them up must not cost a walk over all of them.
TEST(Apply, DiscardsTwentyThousandAbortedSubtransactions) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.begin(true);
  const auto xid = h.xid();
  constexpr uint32_t kAborted = 20'000;
  for (uint32_t i = 1; i <= kAborted; ++i) {
    h.insert("items", {int64_t{i}, "gone", 1}, {1'000 + i});
    h.abort({1'000 + i});
    if (i % 5'000 == 0) h.insert("items", {int64_t{i}, "kept", 1}, {900'000 + i});
  }
  h.commit_streamed(xid);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), min(id), max(id), min(name) FROM items"), "4|5000|20000|kept");
}

TEST(Apply, SpillsLargeTransactions) {
  ApplyHarness h;
  h.parameters.txn_lcr_spill_threshold = 100;
  h.run(kItems);
  h.describe("items");
  h.begin(true);
  const auto large = h.xid();
  for (int i = 0; i < 5000; ++i)
    h.insert("items", {i, std::string(100, 'x'), i}, i % 2 == 0 ? base::Xid{} : base::Xid{901});
  h.abort({901});
  h.begin(true);
  const auto aborted = h.xid();
  for (int i = 0; i < 500; ++i) h.insert("items", {i, "aborted", i});
  h.abort(aborted);
  h.commit_streamed(large);
  h.insert_one("items", {9999, "after", 1});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), max(id) FROM items"), "2501|9999");
  EXPECT_EQ(h.counter("APPLY READER", "spilled_transactions"), 2U);
  for (const auto& sample : h.apply().sample()) {
    for (const auto& [name, value] : sample.gauges) {
      EXPECT_TRUE(name != "spill_bytes" || value == 0) << value;
    }
  }
}

// Text of `bytes` characters that lz4 cannot make much of.
std::string noise(size_t bytes, uint32_t seed) {
  std::string text(bytes, ' ');
  for (char& c : text) {
    seed = seed * 1'664'525 + 1'013'904'223;
    c = static_cast<char>('!' + (seed >> 16) % 90);
  }
  return text;
}

TEST(Apply, SpillsOpenTransactionsThatGetOld) {
  ApplyHarness h;
  h.parameters.txn_age_spill_threshold = std::chrono::seconds(0);
  h.run(kItems);
  h.describe("items");
  h.begin(true);
  const auto old = h.xid();
  for (int i = 0; i < 600; ++i) h.insert("items", {i, "x", i});
  h.insert_one("items", {9999, "another", 1});
  h.commit_streamed(old);
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*), max(id) FROM items"), "601|9999");
  EXPECT_EQ(h.counter("APPLY READER", "spilled_transactions"), 1U);
  EXPECT_EQ(h.counter("APPLY READER", "spilled_lcrs"), 600U);
}

// The reader keeps up with a slow source: it rests after each row.
TEST(Apply, ATransactionThatComesInDribletsHoldsNoMoreMemoryThanItNeeds) {
  ApplyHarness h;
  h.parameters.memory_budget_bytes = 512 * 1024;
  h.run(kItems);
  h.describe("items");
  h.begin();
  constexpr int kRows = 600;  // more than the reader takes between two looks at its budget
  for (int i = 0; i < kRows; ++i) h.insert("items", {i, "x", i});
  const base::Lsn end = h.commit();
  ASSERT_TRUE(h.start());
  h.feed(2);  // TABLE, BEGIN
  for (uint64_t row = 1; row <= kRows; ++row) ASSERT_TRUE(h.feed_and_rest(1, row));
  h.feed();
  EXPECT_TRUE(h.wait_until_applied(end));
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "600");
}

TEST(Apply, SmallTransactionsThatWaitShareTheirMemoryThoughTheReaderRestsBetweenThem) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  constexpr uint64_t kTransactions = 100;
  base::Lsn end;
  for (uint64_t i = 0; i < kTransactions; ++i) end = h.insert_one("items", {static_cast<int64_t>(i), "x", 1});
  auto locker = pg::Connection::open(h.conninfo(), {.search_path = "public"});
  ASSERT_TRUE(locker) << locker.error().message;
  ASSERT_TRUE(locker->script("BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE"));
  ASSERT_TRUE(h.start());
  h.feed(1);  // TABLE
  for (uint64_t row = 1; row <= kTransactions; ++row) ASSERT_TRUE(h.feed_and_rest(3, row));
  EXPECT_LE(h.gauge("APPLY READER", "held_bytes"), static_cast<int64_t>(4 * kBlockBytes));
  ASSERT_TRUE(locker->script("COMMIT"));
  EXPECT_TRUE(h.wait_until_applied(end));
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "100");
}

TEST(Apply, ASpillThatReachesItsLimitStopsItAndNothingIsLost) {
  ApplyHarness h;
  h.parameters.txn_lcr_spill_threshold = 100;
  h.parameters.spill_limit_bytes = 500'000;
  h.run(kItems);
  h.describe("items");
  h.insert_one("items", {9999, "before", 1});
  h.begin(true);
  const auto large = h.xid();
  for (int i = 0; i < 2000; ++i) h.insert("items", {i, noise(500, static_cast<uint32_t>(i)), i});
  h.commit_streamed(large);
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, base::ErrorCode::spill_limit_reached);
  EXPECT_EQ(h.select("SELECT count(*), max(id) FROM items"), "1|9999");
  h.parameters.spill_limit_bytes = 5'000'000;
  const auto again = h.start_and_finish();
  ASSERT_FALSE(again) << again->message;
  EXPECT_EQ(h.select("SELECT count(*), max(id) FROM items"), "2001|9999");
  EXPECT_EQ(h.select("SELECT count(DISTINCT length(name)) FROM items"), "2");
}

// The last block is written at the commit: also there it must not wait for space that only its own end would give.
TEST(Apply, ASpillLimitThatOnlyTheLastBlockReachesStopsItToo) {
  for (const bool streamed : {false, true}) {
    ApplyHarness h;
    h.parameters.txn_lcr_spill_threshold = 100;
    h.parameters.spill_limit_bytes = 40'000;
    h.run(kItems);
    h.describe("items");
    h.begin(streamed);
    const auto large = h.xid();
    for (int i = 0; i < 400; ++i) h.insert("items", {i, noise(100, static_cast<uint32_t>(i)), i});
    if (streamed) {
      h.commit_streamed(large);
    } else {
      h.commit();
    }
    const auto error = h.start_and_finish();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, base::ErrorCode::spill_limit_reached);
    EXPECT_EQ(h.select("SELECT count(*) FROM items"), "0");
  }
}

TEST(Apply, WaitsForSpillSpaceThatAppliedTransactionsGiveBack) {
  ApplyHarness h;
  h.parameters.txn_lcr_spill_threshold = 100;
  h.parameters.spill_limit_bytes = 1'500'000;  // room for one of them
  h.run(kItems);
  h.describe("items");
  for (int round = 0; round < 4; ++round) {
    h.begin();
    for (int i = 0; i < 2000; ++i) h.insert("items", {round * 10'000 + i, noise(500, static_cast<uint32_t>(i)), i});
    h.commit();
  }
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "8000");
  EXPECT_EQ(h.counter("APPLY READER", "spilled_transactions"), 4U);
}

TEST(Apply, RetiresAppliersAndRevivesThem) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.parameters.parallelism = 4;
  ASSERT_TRUE(h.start());
  const auto appliers = [&] { return h.apply().sample().size() - 2; };  // besides reader and coordinator
  int id = 0;
  for (const int parallelism : {4, 1, 3, 2, 4}) {
    h.parameters.parallelism = parallelism;
    h.apply().set_parameters(h.parameters);
    for (int i = 0; i < 20; ++i) h.insert_one("items", {++id, "x", 0});
    h.feed();
    ASSERT_TRUE(h.wait_until_applied(h.end())) << h.apply().status().error->message;
    for (int i = 0; i < 2000 && appliers() != static_cast<size_t>(parallelism); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(appliers(), static_cast<size_t>(parallelism));
  }
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "100");
  EXPECT_EQ(h.apply().tables().at(0).inserts, 100U);  // what retired appliers counted stays
  const auto error = h.finish();
  EXPECT_FALSE(error) << error->message;
}

TEST(Apply, TruncatesInOrder) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  for (int i = 0; i < 100; ++i) h.insert_one("items", {i, "before", i});
  h.begin();
  h.truncate("items");
  h.insert("items", {1, "after", 1});
  h.commit();
  h.insert_one("items", {2, "after", 1});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, name FROM items ORDER BY id"), "1|after,2|after");
}

TEST(Apply, FindsOneOfManyEqualRowsWithoutAKey) {
  ApplyHarness h;
  h.run("CREATE TABLE notes (a int, b text, c jsonb)");
  h.describe("notes", 'f');
  h.begin();
  for (int i = 0; i < 3; ++i) h.insert("notes", {1, nullptr, nullptr});
  h.insert("notes", {2, "x", nullptr});
  h.commit();
  h.begin();
  h.remove_full("notes", {1, nullptr, nullptr});
  h.update_full("notes", {1, nullptr, nullptr}, {5, "y", nullptr});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT a, b FROM notes ORDER BY a"), "1|NULL,2|x,5|y");
}

TEST(Apply, FallsBackWhenUniqueValuesSwap) {
  ApplyHarness h;
  h.run("CREATE TABLE seats (id int PRIMARY KEY, seat int UNIQUE)");
  h.run("INSERT INTO seats SELECT i, i FROM generate_series(1, 40) i");
  h.describe("seats");
  h.begin();
  // Each step is free when it is taken in order; as one UPDATE the rows collide.
  h.update("seats", {1, 1000});
  for (int i = 2; i <= 40; ++i) h.update("seats", {i, i - 1});
  h.update("seats", {1, 40});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM seats WHERE seat = CASE WHEN id = 1 THEN 40 ELSE id - 1 END"), "40");
}

TEST(Apply, UpdatesBesideAnIdentityColumnThatIsAlwaysGenerated) {
  ApplyHarness h;
  h.run("CREATE TABLE orders (id int PRIMARY KEY, number int GENERATED ALWAYS AS IDENTITY, name text)");
  h.describe("orders");
  h.begin();
  for (int i = 0; i < 30; ++i) h.insert("orders", {i, 100 + i, "x"});
  h.commit();
  h.begin();
  for (int i = 0; i < 30; ++i) h.update("orders", {i, 100 + i, "y"});
  h.commit();
  h.begin();
  h.update("orders", {0, 100, "z"});
  h.commit();
  auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT name, count(*), sum(number) FROM orders GROUP BY 1 ORDER BY 1"), "y|29|3335,z|1|100");
  // A number that the destination cannot take over is a conflict, not a silent difference.
  h.begin();
  h.update("orders", {0, 777, "z"});
  h.commit();
  error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::apply_conflict);
}

TEST(Apply, StopsAtAConflictWithEverythingBeforeItCommitted) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  for (int i = 0; i < 50; ++i) h.insert_one("items", {i, "x", i});
  h.begin();
  h.update("items", {777, "missing", 1});
  const base::Lsn conflict = h.commit();
  h.insert_one("items", {777, "after", 1});
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::apply_conflict);
  EXPECT_EQ(error->lsn, conflict);
  EXPECT_NE(error->message.find("\"id\" = 777"), std::string::npos) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "50");
  // The destination's row is repaired: the next run goes on.
  h.run("INSERT INTO items VALUES (777, 'repaired', 0)");
  const auto again = h.start_and_finish();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->code, ErrorCode::apply_conflict);  // the insert of 777, which is there now
  EXPECT_EQ(h.select("SELECT name FROM items WHERE id = 777"), "missing");
}

TEST(Apply, NamesARowByItsUuidAsPostgresqlWritesIt) {
  ApplyHarness h;
  h.run("CREATE TABLE keyed (k uuid PRIMARY KEY, v int)");
  h.describe("keyed");
  h.begin();
  h.update("keyed", {std::string("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16), 1});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("\"k\" = '00112233-4455-6677-8899-aabbccddeeff'"), std::string::npos) << error->message;
}

TEST(Apply, ConflictInASmallGroupLeavesNothingHalfDone) {
  ApplyHarness h;
  h.run(kItems);
  h.describe("items");
  h.begin();
  h.insert("items", {1, "x", 1});
  h.remove("items", {2, nullptr, nullptr});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::apply_conflict);
  EXPECT_EQ(h.select("SELECT count(*) FROM items"), "0");
}

}  // namespace
}  // namespace thalweg::apply
