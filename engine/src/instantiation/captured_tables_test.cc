#include "instantiation/captured_tables.h"

#include <gtest/gtest.h>

#include <utility>

namespace thalweg::instantiation {
namespace {

const TableName kOrders{"public", "orders"};
const TableName kCalled{"sales", "purchases"};
constexpr base::UnixMicros kFirst{1'000'000};
constexpr base::UnixMicros kLater{2'000'000};

TableRecords recorded(TableIdentity identity) {
  TableRecord record;
  record.table = kOrders;
  record.identity = std::move(identity);
  TableRecords records;
  records.emplace(kOrders, std::move(record));
  return records;
}

SourceTables source(TableName name, TableIdentity now, Published published = Published::changes) {
  SourceTables tables;
  tables.tables.push_back(
      {.name = std::move(name), .now = std::move(now), .published = published, .with_rows = {}, .outside_wal = {}});
  return tables;
}

TEST(CapturedTablesTest, AnOlderEnginesTableIsTheOneThatIsPublishedUnderItsName) {
  TableRecords records = recorded({});
  const TableIdentity now{.relation = 10, .publication_entry = 20, .leaves = {}};
  const RecordChanges changes = compare(records, source(kOrders, now), kFirst);
  EXPECT_EQ(changes.identities, std::vector{kOrders});
  EXPECT_TRUE(changes.troubles.empty());
  EXPECT_EQ(records.at(kOrders).identity, now);

  records = recorded({});
  EXPECT_EQ(compare(records, source(kOrders, now, Published::nothing), kFirst).troubles, std::vector{kOrders});
  EXPECT_EQ(records.at(kOrders).trouble->kind, TroubleKind::unpublished);
  records = recorded({});
  EXPECT_EQ(compare(records, {}, kFirst).troubles, std::vector{kOrders});
  EXPECT_EQ(records.at(kOrders).trouble->kind, TroubleKind::dropped);
}

TEST(CapturedTablesTest, ATroubleStaysWhenTheSourceLooksWellAgain) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  EXPECT_TRUE(compare(records, source(kOrders, {.relation = 11, .publication_entry = 0, .leaves = {}}), kFirst).any());
  EXPECT_FALSE(compare(records, source(kOrders, was), kLater).any());
  ASSERT_TRUE(records.at(kOrders).trouble);
  EXPECT_EQ(records.at(kOrders).trouble->kind, TroubleKind::replaced);
  EXPECT_EQ(records.at(kOrders).trouble->since.value, kFirst.value);
  EXPECT_EQ(records.at(kOrders).identity, was);
  EXPECT_TRUE(waits_for_resolution(records.at(kOrders)));
}

// Apply has noted that its rows came. No look has ever seen it.
TEST(CapturedTablesTest, APartitionThatCameAndWentBetweenLooksIsMissed) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  const auto compared = [&](base::Lsn applied, std::set<uint32_t> running, uint32_t running_from,
                            bool finished = true) {
    TableRecords records = recorded(was);
    TableRecord& record = records.at(kOrders);
    record.finished = finished;
    record.written = {{.relation = 11, .name = {"public", "orders_1"}, .commit_lsn = {0x200}, .xid = 7}};
    SourceTables now = source(kOrders, was);
    now.applied = applied;
    now.running = std::move(running);
    now.running_from = running_from;
    compare(records, now, kFirst);
    EXPECT_TRUE(settled_partitions(record).empty()) << "until somebody has seen to it";
    return record.trouble;
  };
  const auto missed = compared({0x201}, {6}, 8);
  ASSERT_TRUE(missed);
  EXPECT_EQ(missed->kind, TroubleKind::partitions_changed);
  EXPECT_NE(missed->reason.find("\"public\".\"orders_1\" was detached or dropped"), std::string::npos)
      << missed->reason;
  // Its rows have not come yet: said now, it would be said again each time that apply reads the transaction.
  EXPECT_FALSE(compared({0x200}, {}, 8));
  // Its commit waits for a synchronous standby, perhaps: nobody sees the partition before.
  EXPECT_FALSE(compared({0x201}, {6, 7}, 8));
  EXPECT_FALSE(compared({0x201}, {}, 7));
  EXPECT_FALSE(compared({0x201}, {}, 8, false)) << "the copy is not finished";
}

TEST(CapturedTablesTest, APartitionThatALookHasSeenNeedsNoNote) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  records.at(kOrders).finished = true;
  records.at(kOrders).written = {{.relation = 11, .name = {"public", "orders_1"}, .commit_lsn = {0x200}, .xid = 7}};
  TableIdentity now = was;
  now.leaves = {{.relation = 11, .file = 11, .name = {"public", "orders_1"}}};
  EXPECT_EQ(compare(records, source(kOrders, now), kFirst).identities, std::vector{kOrders});
  EXPECT_FALSE(records.at(kOrders).trouble);
  EXPECT_EQ(settled_partitions(records.at(kOrders)), records.at(kOrders).written);
}

TEST(CapturedTablesTest, ARenameIsShownForAsLongAsItLasts) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  EXPECT_TRUE(compare(records, source(kCalled, was), kFirst).troubles.empty());  // nothing to be stored
  ASSERT_TRUE(records.at(kOrders).trouble);
  EXPECT_EQ(records.at(kOrders).trouble->now, kCalled);
  EXPECT_FALSE(waits_for_resolution(records.at(kOrders)));
  EXPECT_FALSE(compare(records, source(kOrders, was), kLater).any());
  EXPECT_FALSE(records.at(kOrders).trouble);
}

TEST(CapturedTablesTest, ARenameBeganWhenItWasSeenFirst) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  compare(records, source(kCalled, was), kFirst);
  compare(records, source(kCalled, was), kLater);
  ASSERT_TRUE(records.at(kOrders).trouble);
  EXPECT_EQ(records.at(kOrders).trouble->since.value, kFirst.value);
  const TableRecords shown = std::exchange(records, recorded(was));  // read again
  keep_passing_troubles(records, shown);
  compare(records, source(kCalled, was), kLater);
  EXPECT_EQ(records.at(kOrders).trouble->since.value, kFirst.value);
  compare(records, source({"sales", "orders"}, was), kLater);  // renamed once more
  EXPECT_EQ(records.at(kOrders).trouble->since.value, kLater.value);
}

TEST(CapturedTablesTest, ALostReplicaIdentityIsNoticedOnceAndPasses) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  SourceTables lost = source(kOrders, was);
  lost.tables.front().unidentified = {{.relation = 10, .name = kOrders}};
  RecordChanges changes = compare(records, lost, kFirst);
  EXPECT_FALSE(changes.any()) << "nothing to be stored";
  EXPECT_EQ(changes.noticed, std::vector{kOrders});
  EXPECT_FALSE(waits_for_resolution(records.at(kOrders)));
  lost.tables.front().unidentified.front().usable_index = "orders_code";  // the cure changes, the trouble does not
  changes = compare(records, lost, kLater);
  EXPECT_TRUE(changes.noticed.empty());
  ASSERT_TRUE(records.at(kOrders).trouble);
  EXPECT_EQ(records.at(kOrders).trouble->since.value, kFirst.value);
  EXPECT_NE(records.at(kOrders).trouble->cure.find("orders_code"), std::string::npos);
  EXPECT_NE(records.at(kOrders).trouble->cure_sql.find("orders_code"), std::string::npos);
  compare(records, source(kOrders, was), kLater);
  EXPECT_FALSE(records.at(kOrders).trouble);
}

TEST(CapturedTablesTest, NothingBefallsATableThatIsToBeCopiedAgain) {
  TableRecords records = recorded({.relation = 10, .publication_entry = 20, .leaves = {}});
  records.at(kOrders).copy_again = true;
  EXPECT_FALSE(compare(records, {}, kFirst).any());
  EXPECT_FALSE(records.at(kOrders).trouble);
}

TEST(CapturedTablesTest, PartitionsThatCameWithoutRowsBelongToTheTable) {
  TableRecords records = recorded({.relation = 10, .publication_entry = 20, .leaves = {}});
  const TableIdentity grown{
      .relation = 10,
      .publication_entry = 20,
      .leaves = {{.relation = 30, .file = 30, .name = {"public", "orders_1"}}},
  };
  EXPECT_EQ(compare(records, source(kOrders, grown), kFirst).identities, std::vector{kOrders});
  EXPECT_EQ(records.at(kOrders).identity, grown);
  // From now on its rows are the table's.
  EXPECT_TRUE(compare(records, source(kOrders, {.relation = 10, .publication_entry = 20, .leaves = {}}), kLater).any());
  EXPECT_EQ(records.at(kOrders).trouble->kind, TroubleKind::partitions_changed);
}

TEST(CapturedTablesTest, TheEngineTakesAStoppedTableOutOfThePublicationItself) {
  const TableIdentity was{.relation = 10,
                          .publication_entry = 20,
                          .leaves = {{.relation = 30, .file = 31, .name = {"public", "orders_1"}}}};
  const TableIdentity detached{.relation = 10, .publication_entry = 20, .leaves = {}};
  const TableIdentity taken_out{.relation = 10, .publication_entry = 0, .leaves = {}};
  for (const bool is_stopped : {true, false}) {
    TableRecords records = recorded(was);
    TableRecord& record = records.at(kOrders);
    compare(records, source(kOrders, detached), kFirst);
    record.stopped = is_stopped;
    EXPECT_NE(compare(records, source(kOrders, taken_out, Published::nothing), kLater).any(), is_stopped);
    EXPECT_EQ(record.trouble->kind, is_stopped ? TroubleKind::partitions_changed : TroubleKind::unpublished);
    compare(records, {}, kLater);
    EXPECT_EQ(record.trouble->kind, TroubleKind::dropped) << "it cannot be copied again";
  }
}

// A later copy, or TRUNCATE of the whole table, makes up for it.
TEST(CapturedTablesTest, APartitionThatWasTruncatedAloneIsToldUnlessNothingIsMissing) {
  const TableIdentity was{.relation = 10,
                          .publication_entry = 20,
                          .leaves = {{.relation = 11, .file = 11, .name = {"public", "orders_1"}}}};
  const auto compared = [&](base::Lsn copied_from, std::vector<Truncation> whole) {
    TableRecords records = recorded(was);
    TableRecord& record = records.at(kOrders);
    record.finished = true;
    record.copied_from = copied_from;
    record.truncations = std::move(whole);
    record.written = {
        {.relation = 11, .name = {"public", "orders_1"}, .commit_lsn = {0x200}, .xid = 7, .truncated = true}};
    SourceTables now = source(kOrders, was);
    now.applied = {0x300};
    now.running_from = 20;
    compare(records, now, kFirst);
    EXPECT_EQ(settled_partitions(record).empty(), record.trouble.has_value());
    return record.trouble.has_value();
  };
  EXPECT_TRUE(compared({0x100}, {}));
  EXPECT_TRUE(compared({0x100}, {{.xid = 7, .commit_lsn = {0x200}}})) << "by the same transaction, before it";
  EXPECT_FALSE(compared({0x100}, {{.xid = 8, .commit_lsn = {0x210}}}));
  EXPECT_FALSE(compared({0x201}, {}));
}

TEST(CapturedTablesTest, TheErrorNamesTableReasonAndCure) {
  const base::Error error =
      trouble_error(kOrders, {.kind = TroubleKind::dropped, .reason = "It is gone.", .since = kFirst, .now = {}});
  EXPECT_EQ(error.code, base::ErrorCode::table_trouble);
  EXPECT_EQ(error.table, kOrders.quoted());
  EXPECT_TRUE(error.message.starts_with("It is gone. Take the table out of the stream"));
}

TEST(CapturedTablesTest, UpdatesAreGivenUpFromThePublicationsChangeOn) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  TableRecords records = recorded(was);
  records.at(kOrders).inserts_only = true;
  EXPECT_FALSE(compare(records, source(kOrders, was), kFirst).any());  // not moved yet
  const TableIdentity moved{.relation = 10, .publication_entry = 21, .inserts_only = true, .leaves = {}};
  const RecordChanges changes = compare(records, source(kOrders, moved, Published::inserts), kFirst);
  EXPECT_EQ(changes.identities, std::vector{kOrders});
  EXPECT_TRUE(changes.troubles.empty());
  EXPECT_EQ(records.at(kOrders).identity, moved);
  EXPECT_FALSE(compare(records, source(kOrders, moved, Published::inserts), kLater).any());
}

TEST(CapturedTablesTest, UpdatesThatWereGivenUpComeBackWithAnotherCopyOnly) {
  const TableIdentity was{.relation = 10, .publication_entry = 21, .inserts_only = true, .leaves = {}};
  for (const Published published : {Published::inserts, Published::changes}) {
    TableRecords records = recorded(was);
    EXPECT_EQ(compare(records, source(kOrders, was, published), kFirst).troubles, std::vector{kOrders});
    EXPECT_EQ(records.at(kOrders).trouble->kind, TroubleKind::unpublished);
    EXPECT_TRUE(waits_for_resolution(records.at(kOrders)));
  }
}

}  // namespace
}  // namespace thalweg::instantiation
