#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "apply/apply.h"
#include "apply/apply_harness.h"
#include "apply/gate.h"

// Tests which transactions wait for which, by the destination's own keys: a first one is held at a gate, and a second
// one either commits meanwhile or an applier says that it waits for the first.

namespace thalweg::apply {
namespace {

using telemetry::Activity;
using Changes = std::function<void(ApplyHarness&)>;

struct OrderCase {
  std::string name;
  std::string tables;  // at the destination, with the rows that the first transaction finds
  std::vector<std::string> described;
  char replica_identity;
  Changes first, second;
  bool waits;
  std::string rows;  // what is left: `SELECT id FROM item ORDER BY id`
  CommitSerialization serialization = CommitSerialization::dependent_transactions;

  friend void PrintTo(const OrderCase& c, std::ostream* out) { *out << c.name; }
};

const char* const kItem = "CREATE TABLE item (id int PRIMARY KEY, a int, b text);";
const std::string kFamily =
    "CREATE TABLE parent (id bigint PRIMARY KEY, note text); INSERT INTO parent VALUES (1, 'a'), (2, 'b');"
    "CREATE TABLE item (id int PRIMARY KEY, parent int REFERENCES parent); INSERT INTO item VALUES (5, 2);";

Changes insert(const char* table, Row row) {
  return [=](ApplyHarness& h) { h.insert(table, row); };
}

// Microseconds, days, months.
std::string interval(char days, char months) { return std::string(11, '\0') + days + std::string(3, '\0') + months; }
const std::string kThirtyDays = interval(30, 0);
const std::string kOneMonth = interval(0, 1);
const std::string kTwoMonths = interval(0, 2);

const OrderCase kCases[] = {
    {"OtherRowsRunBeside",
     kItem,
     {"item"},
     'd',
     insert("item", {1, 1, "x"}),
     insert("item", {2, 2, "y"}),
     false,
     "1,2"},
    {"APrimaryKeyOrders",
     kItem,
     {"item"},
     'd',
     insert("item", {1, 1, "x"}),
     [](ApplyHarness& h) { h.remove("item", {1, nullptr, nullptr}); },
     true,
     ""},
    {"AUniqueIndexThatOnlyTheDestinationHasOrders",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (a); INSERT INTO item VALUES (1, 7, 'x')",
     {"item"},
     'f',
     [](ApplyHarness& h) { h.remove_full("item", {1, 7, "x"}); },
     insert("item", {2, 7, "y"}),
     true,
     "2"},
    {"EqualNumbersOfAnotherScaleAreOneKey",
     "CREATE TABLE item (id int PRIMARY KEY, a numeric UNIQUE);"
     "INSERT INTO item VALUES (1, 1.0)",
     {"item"},
     'f',
     [](ApplyHarness& h) { h.remove_full("item", {1, std::string("\0\1\0\0\0\0\0\1\0\1", 10)}); },
     insert("item", {2, std::string("\0\1\0\0\0\0\0\2\0\1", 10)}),
     true,
     "2"},
    {"AnExpressionIndexOrdersWhatItMayHoldEqual",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (lower(b))",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 1, "word"});
       h.remove("item", {1, nullptr, nullptr});
     },
     insert("item", {2, 2, "WORD"}),
     true,
     "2"},
    {"AnExpressionIndexOrdersForNoneToo",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (lower(b))",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 1, "word"});
       h.remove("item", {1, nullptr, nullptr});
     },
     insert("item", {2, 2, "WORD"}),
     true,
     "2",
     CommitSerialization::none},
    {"EqualKeysOfOtherBytesOrderForNone",
     "CREATE TABLE item (id int, span interval PRIMARY KEY)",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, kThirtyDays});
       h.remove("item", {nullptr, kThirtyDays});
     },
     insert("item", {2, kOneMonth}),
     true,
     "2",
     CommitSerialization::none},
    {"OtherIntervalsRunBeside",
     "CREATE TABLE item (id int, span interval PRIMARY KEY)",
     {"item"},
     'd',
     insert("item", {1, kThirtyDays}),
     insert("item", {2, kTwoMonths}),
     false,
     "1,2"},
    {"AnIndexOfAnotherCollationOrdersWhatItMayHoldEqual",
     std::string("CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);") +
         kItem + "CREATE UNIQUE INDEX ON item (b COLLATE caseless)",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 1, "word"});
       h.remove("item", {1, nullptr, nullptr});
     },
     insert("item", {2, 2, "WORD"}),
     true,
     "2"},
    {"WithoutAKeyNothingWaitsForNone",
     "CREATE TABLE item (id int, a int); INSERT INTO item VALUES (9, 9)",
     {"item"},
     'f',
     insert("item", {1, 1}),
     [](ApplyHarness& h) { h.remove_full("item", {9, 9}); },
     false,
     "1",
     CommitSerialization::none},
    {"AnExpressionIndexTellsRowsApartByItsOtherColumns",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (a, lower(b))",
     {"item"},
     'd',
     insert("item", {1, 1, "word"}),
     insert("item", {2, 2, "word"}),
     false,
     "1,2"},
    {"APartialIndexOrdersEqualColumns",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (a) WHERE b = 'live'",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 7, "live"});
       h.update("item", {1, 7, "gone"});
     },
     insert("item", {2, 7, "live"}),
     true,
     "1,2"},
    {"APartialIndexTellsOthersApart",
     std::string(kItem) + "CREATE UNIQUE INDEX ON item (a) WHERE b = 'live'",
     {"item"},
     'd',
     insert("item", {1, 7, "live"}),
     insert("item", {2, 8, "live"}),
     false,
     "1,2"},
    {"AnExclusionConstraintOrders",
     std::string(kItem) + "ALTER TABLE item ADD EXCLUDE USING hash (b WITH =)",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 1, "room"});
       h.remove("item", {1, nullptr, nullptr});
     },
     insert("item", {2, 2, "room"}),
     true,
     "2"},
    {"AGeneratedKeyOrders",
     "CREATE TABLE item (id int PRIMARY KEY, a int, b text,"
     " c text UNIQUE GENERATED ALWAYS AS (lower(b)) STORED);",
     {"item"},
     'd',
     [](ApplyHarness& h) {
       h.insert("item", {1, 1, "word"});
       h.remove("item", {1, nullptr, nullptr});
     },
     insert("item", {2, 2, "WORD"}),
     true,
     "2"},
    {"AChildWaitsForItsParent",
     kFamily,
     {"parent", "item"},
     'd',
     insert("parent", {3, "c"}),
     insert("item", {6, 3}),
     true,
     "5,6"},
    {"AParentThatGoesWaitsForItsChild",
     kFamily,
     {"parent", "item"},
     'f',
     [](ApplyHarness& h) { h.remove_full("item", {5, 2}); },
     [](ApplyHarness& h) { h.remove_full("parent", {2, "b"}); },
     true,
     ""},
    {"AChildRunsBesideAnUpdateOfItsParent",
     kFamily,
     {"parent", "item"},
     'd',
     [](ApplyHarness& h) { h.update("parent", {1, "c"}); },
     insert("item", {6, 1}),
     false,
     "5,6"},
    {"ChildrenOfOneParentRunBeside",
     kFamily,
     {"parent", "item"},
     'd',
     insert("item", {6, 1}),
     insert("item", {7, 1}),
     false,
     "5,6,7"},
    {"InsertsWithoutAKeyRunBeside",
     "CREATE TABLE item (id int, a int);",
     {"item"},
     'f',
     insert("item", {1, 1}),
     insert("item", {2, 2}),
     false,
     "1,2"},
    {"WithoutAKeyADeleteWaits",
     "CREATE TABLE item (id int, a int); INSERT INTO item VALUES (9, 9)",
     {"item"},
     'f',
     insert("item", {1, 1}),
     [](ApplyHarness& h) { h.remove_full("item", {9, 9}); },
     true,
     "1"},
    {"WithoutAKeyAnInsertWaitsForADelete",
     "CREATE TABLE item (id int, a int); INSERT INTO item VALUES (9, 9)",
     {"item"},
     'f',
     [](ApplyHarness& h) { h.remove_full("item", {9, 9}); },
     insert("item", {1, 1}),
     true,
     "1"},
    {"TruncateWaits",
     std::string(kItem) + "CREATE TABLE other (id int PRIMARY KEY)",
     {"item", "other"},
     'd',
     insert("item", {1, 1, "x"}),
     [](ApplyHarness& h) { h.truncate("other"); },
     true,
     "1"},
    {"AfterTruncateAllWait",
     std::string(kItem) + "CREATE TABLE other (id int PRIMARY KEY)",
     {"item", "other"},
     'd',
     [](ApplyHarness& h) { h.truncate("other"); },
     insert("item", {1, 1, "x"}),
     true,
     "1"},
};

class Order : public testing::TestWithParam<OrderCase> {};

TEST_P(Order, OfTwoTransactions) {
  const OrderCase& c = GetParam();
  ApplyHarness h;
  h.parameters.group_size = 1;  // no two in one group
  h.parameters.parallelism = 3;
  h.parameters.commit_serialization = c.serialization;
  Gate::make(h);
  h.run(c.tables);
  h.run("CREATE TABLE seen (id int PRIMARY KEY)");
  for (const auto& table : c.described) h.describe(table, c.replica_identity);
  h.describe("seen");
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  c.first(h);
  h.commit();
  h.begin();
  c.second(h);
  h.insert("seen", {1});
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  const auto seen = [&h] { return h.select("SELECT count(*) FROM seen"); };
  if (c.waits) {
    ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT DEPENDENCY") == 1 && waiting_groups(h) == 1; }));
    EXPECT_EQ(seen(), "0");
    EXPECT_GT(applier_time(h, Activity::dependency), 0U);
  } else {
    ASSERT_TRUE(wait_until(h, [&seen] { return seen() == "1"; }));
    EXPECT_EQ(h.select("SELECT n FROM gate WHERE id = 1"), "0");
  }
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(seen(), "1");
  EXPECT_EQ(h.select("SELECT id FROM item ORDER BY id"), c.rows);
  EXPECT_EQ(h.counter("APPLY COORDINATOR", "retried_groups"), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Order, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<OrderCase>& tested) { return tested.param.name; });

TEST(Order, ATableThatChangedAtTheSourceWaits) {
  ApplyHarness h;
  h.parameters.group_size = 1;
  Gate::make(h);
  h.run(kItem);
  h.describe("item");
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.commit();
  h.describe("item");
  h.insert_one("item", {1, 1, "x"});
  h.insert_one("item", {2, 2, "y"});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return appliers_in(h, "WAIT DEPENDENCY") == 2; }));
  EXPECT_EQ(h.select("SELECT count(*) FROM item"), "0");
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT count(*) FROM item"), "2");
}

TEST(Order, TheOldestIsToldWhileNothingCommits) {
  ApplyHarness h;
  Gate::make(h);
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.commit();
  ASSERT_TRUE(h.start());
  h.feed();
  EXPECT_TRUE(wait_until(h, [&h] { return coordinator_gauge(h, "low_watermark_lag_us") > 50'000; }));
  gate.open();
  EXPECT_TRUE(wait_until(h, [&h] { return coordinator_gauge(h, "low_watermark_lag_us") == 0; }));
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
}

TEST(Order, MoreAppliersTakeUpWhatWaitsForOne) {
  ApplyHarness h;
  h.parameters.group_size = 1;
  h.parameters.parallelism = 1;
  Gate::make(h);
  h.run(kItem);
  h.describe("item");
  Gate gate(h, 1);
  h.begin();
  gate.pass();
  h.commit();
  h.insert_one("item", {1, 1, "x"});
  ASSERT_TRUE(h.start());
  h.feed();
  ASSERT_TRUE(wait_until(h, [&h] { return waiting_groups(h) == 1; }));
  h.parameters.parallelism = 2;
  h.apply().set_parameters(h.parameters);
  EXPECT_TRUE(wait_until(h, [&h] { return h.select("SELECT count(*) FROM item") == "1"; }));
  gate.open();
  const auto error = h.finish();
  ASSERT_FALSE(error) << error->message;
}

}  // namespace
}  // namespace thalweg::apply
