#include <filesystem>

#include <unistd.h>

#include "capture/row_filter_harness.h"

namespace thalweg::capture {
namespace {

using base::ErrorCode;

TEST_F(RowFilterTest, EnqueuesOnlyWhatPasses) {
  open(std::vector{rule("note = 'test'")}, std::vector{rule("region = 'north'")});
  describe("orders", 'f');
  describe("plain");
  EXPECT_EQ(words_of(insert({"1", "north", "a"})), Words{"I 1,north,a"});
  EXPECT_EQ(words_of(insert({"2", "south", "a"})), Words{});
  EXPECT_EQ(words_of(insert({"3", "north", "test"})), Words{});
  EXPECT_EQ(words_of(insert({"4", kNull, kNull})), Words{});
  EXPECT_EQ(words_of(update({"1", "north", "b"}, 'O', {"1", "north", "a"})), Words{"U 1,north,b"});
  EXPECT_EQ(words_of(update({"1", "south", "b"}, 'O', {"1", "north", "b"})), Words{});
  EXPECT_EQ(words_of(remove('O', {"1", "south", "b"})), Words{});
  EXPECT_EQ(words_of(remove('O', {"5", "north", "b"})), Words{"D row 5,north,b"});
  EXPECT_EQ(translator_->counts().lcrs, 3U);
  EXPECT_EQ(counted(), (Counted{3, 5, 0, 0}));
  EXPECT_EQ(words_of(insert_bytes(0, oid("plain"), {"1", "south", "test"})), Words{"I 1,south,test"});
  EXPECT_EQ(counted(), (Counted{3, 5, 0, 0})) << "plain has no rules";
}

TEST_F(RowFilterTest, AnUpdateMovesARowIntoTheSubsetAndOutOfIt) {
  open({}, std::vector{rule("region = 'north'", true)});
  describe("orders", 'f');
  EXPECT_EQ(words_of(update({"1", "north", "b"}, 'O', {"1", "north", "a"})), Words{"U 1,north,b"});
  EXPECT_EQ(words_of(update({"1", "south", "b"}, 'O', {"1", "south", "a"})), Words{});
  EXPECT_EQ(words_of(update({"1", "south", "b"}, 'O', {"1", "north", "a"})), Words{"D row 1,north,a"});
  EXPECT_EQ(words_of(update({"2", "north", "?"}, 'O', {"1", "south", "long"})), Words{"I 2,north,long"});
  EXPECT_EQ(words_of(remove('O', {"1", "south", "b"})), Words{});
  EXPECT_EQ(words_of(remove('O', {"1", "north", "b"})), Words{"D row 1,north,b"});
  const auto last = lcr::FrameView::decode(sink_.last);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->header().flags, lcr::kOldRow);
  EXPECT_EQ(counted(), (Counted{2, 2, 1, 1}));
}

// Without FULL, the key is all that is known of the row before, and enough for a rule that reads nothing else.
TEST_F(RowFilterTest, ASubsetByTheKeyNeedsNoWholeOldRows) {
  open({}, std::vector{rule("id < 10", true)});
  describe("orders");
  EXPECT_EQ(words_of(update({"1", "north", "b"})), Words{"U 1,north,b"});
  EXPECT_EQ(words_of(update({"11", "north", "b"})), Words{});
  EXPECT_EQ(words_of(update({"2", "north", "b"}, 'K', {"12", kNull, kNull})), Words{"I 2,north,b"});
  EXPECT_EQ(words_of(update({"12", "north", "b"}, 'K', {"2", kNull, kNull})), Words{"D key 2,-,-"});
  EXPECT_EQ(words_of(update({"2", "north", "?"}, 'K', {"12", kNull, kNull})), Words{"rule_undecidable"});
}

TEST_F(RowFilterTest, WhatCannotBeDecidedStopsAndPassesNothing) {
  open({}, std::vector{rule("region = 'north'")});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "a"})), Words{"I 1,north,a"});
  const auto stopped = feed(remove('K', {"1", kNull, kNull}));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::rule_undecidable);
  EXPECT_EQ(stopped.error().table, "\"ruled\".\"orders\"");
  EXPECT_EQ(stopped.error().lsn, base::Lsn{0x90});
  EXPECT_EQ(stopped.error().xid, base::Xid{7});
  EXPECT_TRUE(stopped.error().message.contains("rule \"r\"")) << stopped.error().message;
  EXPECT_TRUE(stopped.error().message.contains("DELETE")) << stopped.error().message;
  EXPECT_TRUE(stopped.error().message.contains("REPLICA IDENTITY FULL")) << stopped.error().message;
  EXPECT_EQ(sink_.take(), Words{});
  EXPECT_EQ(words_of(update({"1", "?", "a"})), Words{"rule_undecidable"});
  EXPECT_EQ(counted(), (Counted{1, 0, 0, 0}));
}

TEST_F(RowFilterTest, WhatFailsStopsWithItsSqlstate) {
  open(std::vector{rule("1 / (id - 3) = 1")}, {});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "a"})), Words{"I 1,north,a"});
  const auto stopped = feed(insert({"3", "north", "secret"}));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::rule_failed);
  EXPECT_EQ(stopped.error().sqlstate, "22012");
  EXPECT_FALSE(stopped.error().message.contains("secret"));
}

Rule with(rules::OnError policy, Rule rule) {
  rule.on_error = policy;
  return rule;
}

TEST_F(RowFilterTest, APolicyDecidesWhatCannotBeDecided) {
  open(std::vector{with(rules::OnError::as_false, rule("1 / (id - 3) = 1"))},
       std::vector{with(rules::OnError::as_true, rule("region = 'north'"))});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "a"})), Words{"I 1,north,a"});
  EXPECT_EQ(words_of(insert({"1", "south", "a"})), Words{});
  EXPECT_EQ(words_of(insert({"4", "north", "a"})), Words{}) << "1 / 1 = 1";
  EXPECT_EQ(decided_by_policy(), 0U);
  EXPECT_EQ(words_of(insert({"3", "north", "a"})), Words{"I 3,north,a"});
  EXPECT_EQ(words_of(insert({"3", "south", "a"})), Words{}) << "the positive rule decides that";
  EXPECT_EQ(decided_by_policy(), 1U);
  EXPECT_EQ(words_of(remove('K', {"1", kNull, kNull})), Words{"D key 1,-,-"});
  EXPECT_EQ(words_of(update({"1", "?", "b"})), Words{"U 1,?,b"});
  EXPECT_EQ(words_of(remove('K', {"4", kNull, kNull})), Words{}) << "the negative rule is true for it";
  EXPECT_EQ(decided_by_policy(), 3U);
  EXPECT_EQ(counted(), (Counted{4, 4, 0, 0}));
}

// The row before is known by its key alone: inside or outside, as the policy says.
TEST_F(RowFilterTest, APolicyDecidesForBothRowsOfASubset) {
  open({}, std::vector{with(rules::OnError::as_true, rule("region = 'north'", true))});
  describe("orders");
  EXPECT_EQ(words_of(update({"1", "north", "a"})), Words{"U 1,north,a"});
  EXPECT_EQ(words_of(update({"1", "south", "a"})), Words{"D key 1,-,-"});
  const auto last = lcr::FrameView::decode(sink_.last);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->header().flags, lcr::kOldKey);
  EXPECT_EQ(words_of(update({"2", "south", "a"}, 'K', {"1", kNull, kNull})), Words{"D key 1,-,-"});
  EXPECT_EQ(words_of(update({"1", "?", "b"})), Words{"U 1,?,b"});
  EXPECT_EQ(words_of(remove('K', {"1", kNull, kNull})), Words{"D key 1,-,-"});
  EXPECT_EQ(counted(), (Counted{3, 0, 0, 2}));
  EXPECT_EQ(decided_by_policy(), 5U);
  open({}, std::vector{with(rules::OnError::as_false, rule("region = 'north'", true))});
  describe("orders");
  EXPECT_EQ(words_of(update({"1", "north", "a"})), Words{"I 1,north,a"});
  EXPECT_EQ(words_of(update({"1", "south", "a"})), Words{});
  EXPECT_EQ(words_of(remove('K', {"1", kNull, kNull})), Words{});
  // An INSERT needs the whole row, whatever the policy is.
  EXPECT_EQ(words_of(update({"1", "north", "?"})), Words{"rule_undecidable"});
}

TEST_F(RowFilterTest, ADeleteByPolicyNeedsTheKey) {
  open({}, std::vector{with(rules::OnError::as_true, rule("region = 'north'", true))});
  describe("orders", 'n');
  EXPECT_EQ(words_of(update({"1", "north", "a"})), Words{"U 1,north,a"});
  EXPECT_EQ(words_of(update({"?", "south", "a"})), Words{"rule_undecidable"});
}

TEST_F(RowFilterTest, ARuleThatDoesNotFitIsRefusedWithItsPlace) {
  open({}, std::vector{rule("region = 'north'\n and missing = 1")});
  describe("orders");
  const auto refused = feed(insert({"1", "north", "a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::rule_refused);
  EXPECT_TRUE(refused.error().message.contains("line 2, column 6")) << refused.error().message;
  EXPECT_TRUE(sink_.take().empty());
}

TEST_F(RowFilterTest, ATruncateLeavesOutTablesWhoseRulesDropIt) {
  open(std::vector{rule("", false, rules::kTruncate)}, {});
  describe("orders");
  describe("plain");
  const auto truncate = [&](bool both) {
    PgoutputBytes bytes('T');
    bytes.u32(both ? 2 : 1).u8(0).u32(oid("orders"));
    if (both) bytes.u32(oid("plain"));
    return bytes;
  };
  EXPECT_EQ(words_of(truncate(true)), Words{"T 1"});
  EXPECT_EQ(words_of(truncate(false)), Words{});
  EXPECT_EQ(counted(), (Counted{0, 2, 0, 0}));
  open({}, std::vector{rule("region = 'north'", true)});
  describe("orders");
  describe("plain");
  EXPECT_EQ(words_of(truncate(true)), Words{"T 2"});
  // It empties a subset, though the values of its row are NULL; a rule that names it drops it.
  open(std::vector{rule("region IS NULL")}, std::vector{rule("id > 0", true)});
  describe("orders");
  describe("plain");
  EXPECT_EQ(words_of(truncate(true)), Words{"T 2"});
  open(std::vector{rule("region IS NULL", false, rules::kTruncate)}, std::vector{rule("id > 0", true)});
  describe("orders");
  describe("plain");
  EXPECT_EQ(words_of(truncate(true)), Words{"T 1"});
}

// A new version of the table: what was compiled for another order of columns is not used for it.
TEST_F(RowFilterTest, ATableThatChangesIsCompiledAgain) {
  open({}, std::vector{rule("note = 'x'")});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "x"})), Words{"I 1,north,x"});
  run("ALTER TABLE ruled.orders DROP COLUMN region");
  PgoutputBytes bytes('R');
  bytes.u32(oid("orders")).text("ruled").text("orders").raw("d").u16(2);
  bytes.u8(1).text("id").u32(23).u32(0xFFFFFFFF).u8(0).text("note").u32(25).u32(0xFFFFFFFF);
  ASSERT_TRUE(feed(bytes));
  EXPECT_EQ(words_of(insert({"2", "x"})), Words{"I 2,x"});
  EXPECT_EQ(words_of(insert({"3", "y"})), Words{});
  EXPECT_EQ(counted(), (Counted{2, 1, 0, 0})) << "of both versions";
}

TEST_F(RowFilterTest, ARenamedTableKeepsItsRules) {
  open({}, std::vector{rule("region = 'north'")});
  describe("orders");
  run("ALTER TABLE ruled.orders RENAME TO moved");
  const uint32_t relation = oid("moved");
  describe("moved");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{});
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "north", "a"})), Words{"I 1,north,a"});
  // A later session finds no table of the name, and does not let rows of an unknown one pass.
  begin_session();
  describe("plain");
  EXPECT_EQ(words_of(insert_bytes(0, oid("plain"), {"1", "south", "a"})), Words{"I 1,south,a"});
  describe("moved");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{"rule_refused"});
  // A view that has the name is no table of the stream.
  run("CREATE VIEW ruled.orders AS SELECT * FROM ruled.moved");
  begin_session();
  describe("moved");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{"rule_refused"});
  run("DROP VIEW ruled.orders; ALTER TABLE ruled.moved RENAME TO orders");
}

TEST_F(RowFilterTest, ATableThatTakesARuledOnesNameTakesNoRulesAway) {
  open({}, std::vector{rule("region = 'north'")});
  const auto folder = std::filesystem::temp_directory_path() / ("ruled-" + std::to_string(::getpid()));
  rules_.relations_file = folder / "relations.json";
  begin_session();
  run("DROP TABLE ruled.plain; ALTER TABLE ruled.orders RENAME TO plain; CREATE INDEX orders ON ruled.plain (note)");
  const uint32_t relation = oid("plain");
  begin_session();
  describe("plain");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{});
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "north", "a"})), Words{"I 1,north,a"});
  // Another list of tables says anew what each name means.
  rules_.plain_tables.insert({"ruled", "third"});
  begin_session();
  describe("plain");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{"I 1,south,a"});
  std::filesystem::remove_all(folder);
}

// A table with rules is missing, and what comes under an unknown name is known to be another one.
TEST_F(RowFilterTest, ATableWithoutRulesIsKnownUnderAnotherName) {
  open({}, std::vector{rule("region = 'north'")});
  const auto folder = std::filesystem::temp_directory_path() / ("known-" + std::to_string(::getpid()));
  rules_.relations_file = folder / "relations.json";
  begin_session();
  run("DROP TABLE ruled.orders; ALTER TABLE ruled.plain RENAME TO moved");
  const uint32_t relation = oid("moved");
  begin_session();
  describe("moved");
  EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "south", "a"})), Words{"I 1,south,a"});
  std::filesystem::remove_all(folder);
}

// The catalogue cannot say any more what the columns of a dropped table were like.
TEST_F(RowFilterTest, WhatIsLeftOfADroppedTableStopsNoOther) {
  for (const bool stops_tables : {true, false}) {
    SetUp();
    open({}, std::vector{rule("region = 'north'")});
    rules_.stops_tables = stops_tables;
    begin_session();
    describe("orders");
    describe("plain");
    const uint32_t relation = oid("orders");
    run("DROP TABLE ruled.orders");
    if (stops_tables) {
      EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "north", "a"})), Words{});
      EXPECT_EQ(words_of(insert_bytes(0, oid("plain"), {"1", "south", "a"})), Words{"I 1,south,a"});
      EXPECT_EQ(counted(), (Counted{0, 1, 0, 0}));
    } else {
      EXPECT_EQ(words_of(insert_bytes(0, relation, {"1", "north", "a"})), Words{"rule_refused"});
    }
  }
}

// The rules know the collation and the labels from the catalogue: the description has neither.
TEST_F(RowFilterTest, OrderNeedsTheCollationC) {
  open({}, std::vector{rule("region < 'm' and note < 'm'")});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "a", "a"})), Words{"rule_refused"});
  run("ALTER TABLE ruled.orders ALTER region TYPE text COLLATE \"C\", ALTER note TYPE text COLLATE \"POSIX\"");
  begin_session();
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "a", "a"})), Words{"I 1,a,a"});
  EXPECT_EQ(words_of(insert({"1", "z", "a"})), Words{});
}

// The source repeats a description that reads the same when something else about the table has changed.
TEST_F(RowFilterTest, ARepeatedDescriptionIsANewLookAtTheCatalogue) {
  run("ALTER TABLE ruled.orders ALTER region TYPE text COLLATE \"C\"");
  open({}, std::vector{rule("region < 'm'")});
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "a", "a"})), Words{"I 1,a,a"});
  describe("orders");
  EXPECT_EQ(words_of(insert({"2", "a", "a"})), Words{"I 2,a,a"});
  run("ALTER TABLE ruled.orders ALTER region TYPE text COLLATE \"en-x-icu\"");
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "a", "a"})), Words{"rule_refused"});
}

// Nothing repeats a description when a label gets another name.
TEST_F(RowFilterTest, ALabelThatWasNotThereIsANewLookAtTheCatalogue) {
  run("CREATE TYPE ruled.mood AS ENUM ('low', 'high'); ALTER TABLE ruled.orders ALTER region TYPE ruled.mood "
      "USING 'low'");
  const auto type = source_->query("SELECT 'ruled.mood'::regtype::oid", {});
  ASSERT_TRUE(type) << type.error().message;
  open({}, std::vector{rule("region = 'high'", true)});
  describe("orders", 'f', static_cast<uint32_t>(type->integer(0, 0)));
  EXPECT_EQ(words_of(insert({"1", "high", "a"})), Words{"I 1,high,a"});
  run("ALTER TYPE ruled.mood ADD VALUE 'middle'");
  EXPECT_EQ(words_of(insert({"2", "middle", "a"})), Words{});
  EXPECT_EQ(words_of(update({"1", "high", "b"}, 'O', {"1", "high", "a"})), Words{"U 1,high,b"});
  run("ALTER TYPE ruled.mood RENAME VALUE 'high' TO 'top'");
  EXPECT_EQ(words_of(remove('O', {"1", "top", "b"})), Words{"rule_refused"});
}

// A change brings the labels' names of its time, and the rule compares names: a filter that was made before labels
// swapped theirs decides as one that is made now.
TEST_F(RowFilterTest, LabelsThatSwapTheirNamesAreTheirNames) {
  run("CREATE TYPE ruled.mood AS ENUM ('low', 'high'); ALTER TABLE ruled.orders ALTER region TYPE ruled.mood "
      "USING 'low'");
  const auto type = source_->query("SELECT 'ruled.mood'::regtype::oid", {});
  ASSERT_TRUE(type) << type.error().message;
  open({}, std::vector{rule("region = 'high'")});
  const auto decided = [&] {
    Words words = words_of(insert({"1", "high", "a"}));
    for (const std::string& word : words_of(insert({"2", "low", "a"}))) words.push_back(word);
    return words;
  };
  describe("orders", 'f', static_cast<uint32_t>(type->integer(0, 0)));
  const Words before = decided();
  run("ALTER TYPE ruled.mood RENAME VALUE 'high' TO 'x'; ALTER TYPE ruled.mood RENAME VALUE 'low' TO 'high'; "
      "ALTER TYPE ruled.mood RENAME VALUE 'x' TO 'low'");
  EXPECT_EQ(decided(), before);
  begin_session();
  describe("orders", 'f', static_cast<uint32_t>(type->integer(0, 0)));
  EXPECT_EQ(decided(), before);
}

}  // namespace
}  // namespace thalweg::capture
