#include "instantiation/rewrites.h"

#include <gtest/gtest.h>

#include <utility>

namespace thalweg::instantiation {
namespace {

const TableName kEvent{"public", "event"};
constexpr base::Lsn kFirst{100};
constexpr base::Lsn kLater{200};
constexpr base::UnixMicros kAt{1'000'000};

class RewritesTest : public testing::Test {
 protected:
  static Leaf leaf(uint32_t relation, uint32_t file) {
    return {.relation = relation, .file = file, .name = {"public", "event_" + std::to_string(relation)}};
  }

  RewritesTest() {
    TableRecord record;
    record.table = kEvent;
    record.identity = {
        .relation = 10, .publication_entry = 20, .inserts_only = false, .leaves = {leaf(1, 1), leaf(2, 2)}};
    records_.emplace(kEvent, std::move(record));
  }

  // The source's answer: each leaf's file, and the transaction that made it so.
  static SourceTables source(std::pair<uint32_t, uint32_t> first, std::pair<uint32_t, uint32_t> second,
                             base::Lsn wal_end = kFirst) {
    SourceTables now;
    now.wal_end = wal_end;
    now.tables.push_back({.name = kEvent,
                          .now = {.relation = 10,
                                  .publication_entry = 20,
                                  .inserts_only = false,
                                  .leaves = {leaf(1, first.first), leaf(2, second.first)}},
                          .published = Published::changes,
                          .with_rows = {},
                          .outside_wal = {},
                          .changed_by = {{1, first.second}, {2, second.second}}});
    return now;
  }

  // A look at it, with what is applied.
  RecordChanges look(SourceTables now, base::Lsn low_watermark, std::string_view suspect = {}) {
    taken_over_ = rewrites_.settle(records_, now, low_watermark, suspect);
    return compare(records_, now, kAt);
  }
  TableRecord& record() { return records_.at(kEvent); }

  TableRecords records_;
  Rewrites rewrites_;
  std::vector<TableName> taken_over_;
};

TEST_F(RewritesTest, NothingIsRewritten) {
  EXPECT_TRUE(Rewrites::open(records_, source({1, 7}, {2, 8})).empty());
  EXPECT_FALSE(look(source({1, 7}, {2, 8}), {}).any());
  EXPECT_TRUE(taken_over_.empty());
}

TEST_F(RewritesTest, ATruncateOfTheTableWaitsUntilItIsApplied) {
  EXPECT_EQ(std::set{kEvent}, Rewrites::open(records_, source({11, 77}, {12, 77})));
  EXPECT_FALSE(look(source({11, 77}, {12, 77}), {}).any());
  record().truncations = {{.xid = 70}, {.xid = 77}};
  EXPECT_FALSE(look(source({11, 77}, {12, 77}), kLater).any());
  EXPECT_EQ(taken_over_, std::vector{kEvent});
  EXPECT_EQ(record().identity.leaves, (std::vector{leaf(1, 11), leaf(2, 12)}));
  EXPECT_TRUE(Rewrites::open(records_, source({11, 77}, {12, 77})).empty());
}

TEST_F(RewritesTest, OneOfAPartitionAloneIsToldOnceAllOfThatTimeIsApplied) {
  EXPECT_FALSE(look(source({11, 77}, {2, 8}, kFirst), base::Lsn{kFirst.value - 1}).any());
  // Not the end of the WAL now: where it was when it was seen first.
  EXPECT_EQ(look(source({11, 77}, {2, 8}, kLater), kFirst).troubles, std::vector{kEvent});
  EXPECT_NE(record().trouble->reason.find("\"public\".\"event_1\" was truncated"), std::string::npos);
  EXPECT_EQ(record().trouble->reason.find("event_2"), std::string::npos);
}

TEST_F(RewritesTest, OneOfAPartitionAfterThatOfTheTableIsTold) {
  record().truncations = {{.xid = 77}};
  EXPECT_EQ(look(source({13, 78}, {12, 77}), kFirst).troubles, std::vector{kEvent});
  EXPECT_EQ(record().identity.leaves, (std::vector{leaf(1, 1), leaf(2, 12)})) << "the other one is known";
}

TEST_F(RewritesTest, OneBeforeThePartitionWasSeenFirstIsNoOther) {
  const auto grown = [](base::Lsn wal_end = kFirst) {
    SourceTables now = source({1, 7}, {2, 8}, wal_end);
    now.tables.front().now.leaves.push_back(leaf(3, 33));
    now.tables.front().changed_by[3] = 79;
    return now;
  };
  EXPECT_EQ(std::set{kEvent}, Rewrites::open(records_, grown()));
  EXPECT_FALSE(look(grown(), {}).troubles.size());
  EXPECT_EQ(record().identity.leaves.back(), leaf(3, 3)) << "as it was before, until the stream has come that far";
  EXPECT_EQ(look(grown(kLater), kFirst).troubles, std::vector{kEvent});
  EXPECT_NE(record().trouble->reason.find("\"public\".\"event_3\" was truncated"), std::string::npos);
}

TEST_F(RewritesTest, ATruncateOfTheTableEmptiesWhatNobodyHasSeen) {
  SourceTables now = source({11, 77}, {12, 77});
  now.tables.front().now.leaves.push_back(leaf(3, 33));
  now.tables.front().changed_by[3] = 77;
  record().truncations = {{.xid = 77}};
  EXPECT_TRUE(look(now, kFirst).troubles.empty());
  EXPECT_EQ(record().identity.leaves, (std::vector{leaf(1, 11), leaf(2, 12), leaf(3, 33)}));
}

TEST_F(RewritesTest, NoneIsTroubleWhereARuleDropsEachTruncate) {
  SourceTables now = source({11, 77}, {2, 8});
  EXPECT_EQ(rewrites_.settle(records_, now, kLater, {}, {kEvent}), std::vector{kEvent});
  EXPECT_FALSE(compare(records_, now, kAt).any());
  EXPECT_EQ(record().identity.leaves, (std::vector{leaf(1, 11), leaf(2, 2)}));
}

TEST_F(RewritesTest, AnotherFileIsWaitedForAnew) {
  EXPECT_FALSE(look(source({11, 77}, {2, 8}, kFirst), {}).any());
  EXPECT_FALSE(look(source({13, 79}, {2, 8}, kLater), kFirst).any());
  EXPECT_TRUE(look(source({13, 79}, {2, 8}, kLater), kLater).any());
}

TEST_F(RewritesTest, WhatHasMadeTheStreamFailDoesNotWait) {
  EXPECT_FALSE(look(source({11, 77}, {2, 8}), {}, "\"public\".\"other\"").any());
  EXPECT_FALSE(look(source({11, 77}, {2, 8}), {}, "\"public\".\"event_2\"").any());
  EXPECT_TRUE(look(source({11, 77}, {2, 8}), {}, "\"public\".\"event_1\"").any());
}

TEST_F(RewritesTest, ThatWhichFailsIsNamedAsTheDestinationDoes) {
  record().there = {"archive", "happened"};
  EXPECT_FALSE(look(source({11, 77}, {2, 8}), {}, "\"archive\".\"event_2\"").any());
  EXPECT_TRUE(look(source({11, 77}, {2, 8}), {}, "\"archive\".\"event_1\"").any());
  record().trouble.reset();
  EXPECT_TRUE(look(source({12, 78}, {2, 8}), {}, "\"archive\".\"happened\"").any());
}

TEST_F(RewritesTest, ATroubleThatIsThereStays) {
  record().trouble =
      TableTrouble{.kind = TroubleKind::partitions_changed, .reason = "It was.", .since = kAt, .now = {}};
  record().truncations = {{.xid = 77}};
  EXPECT_TRUE(Rewrites::open(records_, source({11, 77}, {12, 77})).empty());
  look(source({11, 77}, {12, 77}), kLater);
  EXPECT_TRUE(taken_over_.empty());
  EXPECT_TRUE(record().trouble);
}

}  // namespace
}  // namespace thalweg::instantiation
