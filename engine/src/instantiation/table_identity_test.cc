#include "instantiation/table_identity.h"

#include <gtest/gtest.h>

namespace thalweg::instantiation {
namespace {

const TableName kEvent{"public", "event"};
const Leaf kFirst{.relation = 11, .file = 111, .name = {"public", "event_1"}};
const Leaf kSecond{.relation = 12, .file = 112, .name = {"public", "event_2"}};
const Leaf kThird{.relation = 13, .file = 113, .name = {"public", "event_3"}, .attached = 7};
const TableIdentity kWas{.relation = 10, .publication_entry = 20, .leaves = {kFirst, kSecond}};

SourceTable event(std::vector<Leaf> leaves) {
  return {.name = kEvent,
          .now = {.relation = 10, .publication_entry = 20, .leaves = std::move(leaves)},
          .published = Published::changes,
          .with_rows = {},
          .outside_wal = {}};
}

std::optional<TableTrouble> examined(std::vector<SourceTable> tables) {
  return examine(kEvent, kWas, {.tables = std::move(tables), .wal_end = {}});
}

std::string reason_of(const SourceTable& now) {
  const auto trouble = examined({now});
  if (!trouble || trouble->kind != TroubleKind::partitions_changed) return "";
  return trouble->reason;
}

TEST(TableIdentityTest, SurvivesItsText) {
  EXPECT_EQ(identity_from_json(to_json(kWas)), kWas);
  const TableIdentity attached{.relation = 10, .publication_entry = 20, .leaves = {kThird}};
  EXPECT_EQ(identity_from_json(to_json(attached)), attached);
  const TableIdentity older =
      identity_from_json(R"({"relation":10,"entry":20,"leaves":[[11,111,"public","event_1"]]})");
  EXPECT_EQ(older.leaves, std::vector{kFirst});
  EXPECT_EQ(identity_from_json(to_json(older)), older);
  EXPECT_NE(to_json(older).find(R"([11,111,"public","event_1"])"), std::string::npos) << "found in what is stored";
  for (const char* unknown : {"", "null", "[]", "{}", R"({"relation":1,"entry":2,"leaves":[[1,2]]})"}) {
    EXPECT_TRUE(identity_from_json(unknown).leaves.empty()) << unknown;
  }
}

TEST(TableIdentityTest, TheSameTableHasNoTrouble) {
  EXPECT_FALSE(examined({event({kFirst, kSecond})}));
  EXPECT_FALSE(examined({event({kSecond, kFirst})}));
}

TEST(TableIdentityTest, ANameIsNotEnough) {
  SourceTable other = event({});
  other.now.relation = 99;
  EXPECT_EQ(examined({})->kind, TroubleKind::dropped);
  EXPECT_EQ(examined({other})->kind, TroubleKind::replaced);
  SourceTable renamed = event({kFirst, kSecond});
  renamed.name = {"sales", "event"};
  EXPECT_EQ(examined({renamed})->kind, TroubleKind::renamed);
  EXPECT_EQ(examined({renamed})->now, renamed.name);
  EXPECT_EQ(examined({renamed, other})->kind, TroubleKind::replaced);
}

TEST(TableIdentityTest, WhatWasNotPublishedAllTheTimeMisses) {
  SourceTable taken_out = event({kFirst, kSecond});
  taken_out.published = Published::nothing;
  EXPECT_EQ(examined({taken_out})->kind, TroubleKind::unpublished);
  SourceTable put_back = event({kFirst, kSecond});
  put_back.now.publication_entry = 21;
  EXPECT_EQ(examined({put_back})->kind, TroubleKind::unpublished);
  put_back.name = {"sales", "event"};  // a rename does not hide it
  EXPECT_EQ(examined({put_back})->kind, TroubleKind::unpublished);
}

TEST(TableIdentityTest, IsPublishedAsItWasCaptured) {
  TableIdentity was = kWas;
  was.inserts_only = true;
  EXPECT_EQ(identity_from_json(to_json(was)), was);
  EXPECT_FALSE(identity_from_json(to_json(kWas)).inserts_only);
  SourceTable now = event({kFirst, kSecond});
  EXPECT_NE(examine(kEvent, was, {.tables = {now}})->reason.find("sends updates and deletes"), std::string::npos);
  now.published = Published::inserts;
  EXPECT_FALSE(examine(kEvent, was, {.tables = {now}}));
  EXPECT_NE(examined({now})->reason.find("updates and deletes are missing"), std::string::npos);
  now.published = Published::unknown;  // there is no publication: capture says so
  EXPECT_FALSE(examine(kEvent, was, {.tables = {now}}));
  EXPECT_FALSE(examined({now}));
}

TEST(TableIdentityTest, SaysWhatHappenedToWhichPartition) {
  Leaf truncated = kFirst;
  truncated.file = 999;
  EXPECT_NE(reason_of(event({truncated, kSecond})).find("\"event_1\" was truncated"), std::string::npos);
  EXPECT_NE(reason_of(event({kFirst})).find("\"event_2\" was detached"), std::string::npos);

  const Leaf made{.relation = 13, .file = 13, .name = {"public", "event_3"}};
  EXPECT_EQ(reason_of(event({kFirst, kSecond, made})), "");
  Leaf emptied = made;
  emptied.file = 113;
  SourceTable grown = event({kFirst, kSecond, emptied});
  EXPECT_NE(reason_of(grown).find("\"event_3\" was truncated"), std::string::npos);
  grown.with_rows = {13};
  EXPECT_EQ(reason_of(grown).find("\"event_3\" was truncated"), std::string::npos);
  EXPECT_NE(reason_of(grown).find("\"event_3\" was attached with rows"), std::string::npos);
  grown.with_rows.clear();
  grown.outside_wal = {13};
  EXPECT_NE(reason_of(grown).find("\"event_3\" is unlogged or foreign"), std::string::npos);
}

// The source has told that it was truncated: its file may be the one that the identity has, and it may be gone.
TEST(TableIdentityTest, NamesAPartitionThatIsSaidToBeTruncated) {
  WrittenLeaf leaf{.relation = kFirst.relation, .name = kFirst.name, .commit_lsn = {5}, .xid = 7, .truncated = true};
  SourceTables now{.tables = {event({kFirst, kSecond})}, .running_from = 100, .applied = {6}};
  const auto trouble = examine(kEvent, kWas, now, std::span(&leaf, 1));
  ASSERT_TRUE(trouble);
  EXPECT_NE(trouble->reason.find("\"event_1\" was truncated"), std::string::npos) << trouble->reason;
  now.tables = {event({kSecond})};
  EXPECT_NE(examine(kEvent, kWas, now, std::span(&leaf, 1))->reason.find("was truncated"), std::string::npos);
  now.tables = {event({kFirst, kSecond})};
  now.applied = {5};  // its rows may not have come yet
  EXPECT_FALSE(examine(kEvent, kWas, now, std::span(&leaf, 1)));
}

TEST(TableIdentityTest, APartitionThatWasAwayMayHaveOtherRows) {
  TableIdentity was = kWas;
  was.leaves.push_back(kThird);
  EXPECT_FALSE(examine(kEvent, was, {.tables = {event({kFirst, kSecond, kThird})}}));
  Leaf again = kThird;
  again.attached = 8;
  const auto trouble = examine(kEvent, was, {.tables = {event({kFirst, kSecond, again})}});
  ASSERT_TRUE(trouble);
  EXPECT_NE(trouble->reason.find("\"event_3\" was detached and attached again"), std::string::npos);
  was.leaves.back().attached = 0;  // an older engine copied it
  EXPECT_FALSE(examine(kEvent, was, {.tables = {event({kFirst, kSecond, again})}}));
}

TEST(TableIdentityTest, NamesPartitionsThatCannotBeUpdatedAtTheSource) {
  SourceTable grown = event({kFirst, kSecond, {.relation = 13, .file = 13, .name = {"public", "event_3"}}});
  grown.unidentified = {{.relation = 13, .name = {"public", "event_3"}}};
  const auto trouble = examined({grown});
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->kind, TroubleKind::unidentified);
  EXPECT_TRUE(trouble->loses_nothing());
  EXPECT_EQ(trouble->now, kEvent);
  EXPECT_NE(trouble->reason.find("\"event_3\" has no replica identity"), std::string::npos) << trouble->reason;
  EXPECT_NE(cure_of(*trouble, false).find("REPLICA IDENTITY FULL"), std::string::npos);
  EXPECT_EQ(trouble->cure_sql, "ALTER TABLE \"public\".\"event_3\" REPLICA IDENTITY FULL;");
  TableIdentity given_up = kWas;
  given_up.inserts_only = true;
  grown.published = Published::inserts;
  EXPECT_FALSE(examine(kEvent, given_up, {.tables = {grown}})) << "only inserts come";
}

TEST(TableIdentityTest, ATableLosesItsReplicaIdentity) {
  const TableIdentity was{.relation = 10, .publication_entry = 20, .leaves = {}};
  SourceTable now = event({});
  now.unidentified = {{.relation = 10, .name = kEvent, .usable_index = "event_code"}};
  const auto trouble = examine(kEvent, was, {.tables = {now}});
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->kind, TroubleKind::unidentified);
  EXPECT_EQ(trouble->now, kEvent);
  EXPECT_TRUE(trouble->reason.starts_with("\"public\".\"event\" has no replica identity")) << trouble->reason;
  EXPECT_EQ(cure_of(*trouble, false),
            "At the source, run ALTER TABLE \"public\".\"event\" REPLICA IDENTITY USING INDEX \"event_code\";");
  EXPECT_EQ(trouble->cure_sql, "ALTER TABLE \"public\".\"event\" REPLICA IDENTITY USING INDEX \"event_code\";");
  now.unidentified.clear();
  EXPECT_FALSE(examine(kEvent, was, {.tables = {now}}));
}

TEST(TableIdentityTest, ARenamedTableThatCannotBeUpdatedIsNotCalledOnlyRenamed) {
  SourceTable now = event({kFirst, kSecond});
  now.name = {"sales", "event"};
  now.unidentified = {{.relation = 11, .name = kFirst.name}};
  const auto trouble = examined({now});
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->kind, TroubleKind::unidentified);
  EXPECT_EQ(trouble->now, now.name);
  EXPECT_NE(trouble->reason.find("was renamed to \"sales\".\"event\""), std::string::npos) << trouble->reason;
  EXPECT_NE(trouble->reason.find("\"event_1\" has no replica identity"), std::string::npos) << trouble->reason;
  EXPECT_NE(cure_of(*trouble, false).find("Follow the rename"), std::string::npos);
  EXPECT_EQ(trouble->cure_sql, "ALTER TABLE \"public\".\"event_1\" REPLICA IDENTITY FULL;");
}

TEST(TableIdentityTest, KindsHaveNames) {
  for (const TroubleKind kind :
       {TroubleKind::dropped, TroubleKind::replaced, TroubleKind::renamed, TroubleKind::unpublished,
        TroubleKind::partitions_changed, TroubleKind::unidentified}) {
    EXPECT_EQ(trouble_kind(name_of(kind)), kind);
  }
  EXPECT_FALSE(trouble_kind("WELL"));
}

TEST(TableIdentityTest, ACopyOfAnotherTableNeedsRulesThatFitIt) {
  const TableTrouble trouble{.kind = TroubleKind::replaced, .reason = "r", .since = {}, .now = {}};
  EXPECT_NE(cure_of(trouble, false).find("do not fit the new table, correct them or narrow their scope first"),
            std::string::npos);
}

TEST(TableIdentityTest, OnceItsChangesWereLeftOutOnlyACopyHelps) {
  const TableTrouble trouble{.kind = TroubleKind::partitions_changed, .reason = "r", .since = {}, .now = {}};
  EXPECT_NE(cure_of(trouble, false).find("accept"), std::string::npos);
  EXPECT_EQ(cure_of(trouble, true), "Copy the table again: partitions that the destination lacks are made.");
  // A partition attached with rows is missing at the destination, and a detached one is still there: the cure names
  // both ways by hand.
  EXPECT_TRUE(cure_of(trouble, false).starts_with(cure_of(trouble, true)));
  EXPECT_NE(cure_of(trouble, false).find("make and fill the one that came"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::instantiation
