#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apply/apply_harness.h"

// Handlers that make one row of the source's and the destination's, by groups of columns.

namespace thalweg::apply {
namespace {

constexpr const char* kQuoted = "\"public\".\"items\"";
constexpr const char* kRows = "SELECT id, name, amount, stock FROM items ORDER BY id";
constexpr const char* kLog = "SELECT kind, action, change FROM thalweg.conflict_log ORDER BY id";

class Resolutions : public testing::Test {
 protected:
  void SetUp() override {
    h.parameters.disable_on_error = false;
    h.parameters.compared = {{}};
    h.run("CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint, stock int)");
    h.describe("items", 'f');
  }
  void handle(const std::vector<ConflictHandler>& handlers) {
    for (ConflictHandler handler : handlers) {
      handler.table = table_;
      h.parameters.conflict_handlers.push_back(handler);
    }
  }
  template <typename Write>
  void apply(Write write) {
    h.begin();
    write();
    h.commit();
    const auto error = h.start_and_finish();
    ASSERT_FALSE(error) << error->message;
  }
  ApplyHarness h;
  std::string table_ = kQuoted;
};

constexpr auto kDiffers = ConflictKind::update_origin_differs;

TEST_F(Resolutions, TheHigherValueWinsWithItsWholeRow) {
  h.run(
      "INSERT INTO items VALUES (1, 'theirs', 10, 5), (2, 'theirs', 30, 5), (3, 'theirs', 20, 5), "
      "(4, 'theirs', NULL, 5), (5, 'theirs', 1, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::maximum, .by = "amount"}});
  apply([&] {
    for (int64_t id = 1; id <= 4; ++id) h.update_full("items", {id, "old", 1, 1}, {id, "ours", 20, 2});
    h.update_full("items", {5, "old", 1, 1}, {5, "ours", nullptr, 2});
  });
  EXPECT_EQ(h.select(kRows), "1|ours|20|2,2|theirs|30|5,3|theirs|20|5,4|ours|20|2,5|theirs|1|5");
  EXPECT_EQ(h.select("SELECT action, count(*) FROM thalweg.conflict_log GROUP BY 1"), "maximum|5");
}

TEST_F(Resolutions, TheLowerValueWinsAndATieMayBeTheSources) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 10, 5), (2, 'theirs', 30, 5), (3, 'theirs', 20, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::minimum, .by = "amount", .tie_overwrites = true}});
  apply([&] {
    for (int64_t id = 1; id <= 3; ++id) h.update_full("items", {id, "old", 1, 1}, {id, "ours", 20, 2});
  });
  EXPECT_EQ(h.select(kRows), "1|theirs|10|5,2|ours|20|2,3|ours|20|2");
}

TEST_F(Resolutions, DeltasAddUpBesideAnotherGroup) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 100, 7)");
  handle({{.kind = kDiffers, .action = ConflictAction::delta, .columns = {"amount", "stock"}},
          {.kind = kDiffers, .action = ConflictAction::overwrite}});
  apply([&] {
    h.update_full("items", {1, "old", 50, 5}, {1, "ours", 60, 2});
    h.update_full("items", {1, "ours", 60, 2}, {1, "last", 55, 3});
  });
  EXPECT_EQ(h.select(kRows), "1|last|105|5") << "100 + 10 - 5, 7 - 3 + 1";
  EXPECT_EQ(h.select(kLog), "update_origin_differs|combined|1,update_origin_differs|combined|2");
}

TEST_F(Resolutions, AGroupThatDoesNotDifferHasNoConflict) {
  h.run("INSERT INTO items VALUES (1, 'old', 100, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::discard, .columns = {"amount"}},
          {.kind = kDiffers, .action = ConflictAction::error}});
  apply([&] { h.update_full("items", {1, "old", 50, 5}, {1, "ours", 60, 2}); });
  EXPECT_EQ(h.select(kRows), "1|ours|100|2") << "of the amount the destination's row stays, the others did not differ";
}

TEST_F(Resolutions, AColumnWithoutAHandlerIsNotSettled) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 100, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::discard, .columns = {"amount"}}});
  apply([&] { h.update_full("items", {1, "old", 50, 5}, {1, "ours", 60, 2}); });
  EXPECT_EQ(h.select(kRows), "1|theirs|100|5");
  EXPECT_EQ(h.select("SELECT message LIKE '%no handler decides about column \"name\"' FROM thalweg.error_queue"), "t");
  EXPECT_EQ(h.select(kLog), "update_origin_differs|park|1");
}

TEST_F(Resolutions, WhatCannotBeAddedIsNotSettled) {
  h.run(
      "INSERT INTO items VALUES (1, 'theirs', 100, 5), (2, 'old', 1, 2147483647), "
      "(3, 'theirs', NULL, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::delta, .columns = {"amount", "stock"}},
          {.kind = kDiffers, .action = ConflictAction::overwrite}});
  h.begin();
  h.update_full("items", {1, "old", nullptr, 5}, {1, "ours", 60, 2});
  h.commit();
  h.begin();
  h.update_full("items", {2, "old", 1, 1}, {2, "ours", 1, 2});
  h.commit();
  h.begin();
  h.update_full("items", {3, "old", 1, 5}, {3, "ours", 3, 5});
  h.commit();
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kRows), "1|theirs|100|5,2|old|1|2147483647,3|theirs|NULL|5");
  EXPECT_EQ(h.select("SELECT message LIKE '%no difference to add', message LIKE '%out of range', "
                     "message LIKE '%not written' "
                     "FROM thalweg.error_queue ORDER BY commit_lsn"),
            "t|f|f,f|t|f,f|f|t");
}

TEST_F(Resolutions, ARowThatIsThereIsCombinedWithAnInsert) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 10, 5), (2, 'theirs', 30, 5)");
  handle({{.kind = ConflictKind::insert_exists, .action = ConflictAction::maximum, .by = "amount"}});
  apply([&] {
    h.insert("items", {1, "ours", 20, 2});
    h.insert("items", {2, "ours", 20, 2});
    h.insert("items", {3, "ours", 20, 2});
  });
  EXPECT_EQ(h.select(kRows), "1|ours|20|2,2|theirs|30|5,3|ours|20|2");
  EXPECT_EQ(h.select(kLog), "insert_exists|maximum|1,insert_exists|maximum|2");
}

TEST_F(Resolutions, AWinningUpdateMovesItsKeyAndALosingOneToo) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 10, 5), (2, 'theirs', 30, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::maximum, .by = "amount"}});
  apply([&] {
    h.update_full("items", {1, "old", 1, 1}, {11, "ours", 20, 2});
    h.update_full("items", {2, "old", 1, 1}, {12, "ours", 20, 2});
  });
  EXPECT_EQ(h.select(kRows), "11|ours|20|2,12|theirs|30|5");
}

TEST_F(Resolutions, ARowThatLosesIsNotWritten) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 30, 5), (2, 'theirs', 30, 5), (3, 'theirs', 30, 5)");
  const std::string versions = h.select("SELECT id, ctid, xmin FROM items ORDER BY id");
  handle({{.kind = kDiffers, .action = ConflictAction::maximum, .by = "amount"},
          {.kind = ConflictKind::insert_exists, .action = ConflictAction::discard, .columns = {"name"}},
          {.kind = ConflictKind::insert_exists, .action = ConflictAction::minimum, .by = "stock"}});
  apply([&] {
    h.update_full("items", {1, "old", 1, 1}, {1, "ours", 20, 2});
    h.update_full("items", {2, "old", 1, 1}, {2, "ours", 30, 2});
    h.insert("items", {3, "ours", 40, 9});
  });
  EXPECT_EQ(h.select("SELECT id, ctid, xmin FROM items ORDER BY id"), versions);
  EXPECT_EQ(h.select(kLog), "update_origin_differs|maximum|1,update_origin_differs|maximum|2,insert_exists|combined|3");
  EXPECT_EQ(h.apply().tables().at(0).updates + h.apply().tables().at(0).inserts, 0U);
}

TEST_F(Resolutions, AColumnThatNobodyCanAssignHasToBeAsItIsAtTheSource) {
  h.run(
      "DROP TABLE items; CREATE TABLE items (id int PRIMARY KEY, name text, amount bigint GENERATED ALWAYS AS "
      "IDENTITY, stock int); INSERT INTO items OVERRIDING SYSTEM VALUE VALUES (1, 'theirs', 10, 5), "
      "(2, 'theirs', 20, 5), (3, 'theirs', 30, 5)");
  h.describe("items", 'f');
  handle({{.kind = ConflictKind::insert_exists, .action = ConflictAction::maximum, .by = "stock"}});
  apply([&] { h.insert("items", {1, "ours", 10, 7}); });
  apply([&] { h.insert("items", {2, "ours", 11, 7}); });
  apply([&] { h.insert("items", {3, "ours", 11, 3}); });
  EXPECT_EQ(h.select(kRows), "1|ours|10|7,2|theirs|20|5,3|theirs|30|5");
  EXPECT_EQ(h.select("SELECT action FROM thalweg.conflict_log ORDER BY id"), "maximum,park,maximum");
  EXPECT_EQ(h.select("SELECT message LIKE '%the row is there, but was not written' FROM thalweg.error_queue"), "t");
}

// As though the row in the way had gone before apply looked.
TEST_F(Resolutions, AnInsertWhoseRowIsGoneIsMade) {
  h.run(
      "CREATE SEQUENCE calls; CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN IF nextval(''public.calls'') <= 3 THEN RAISE unique_violation; END IF; RETURN NEW; END'; "
      "CREATE TRIGGER meet BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION meet(); "
      "ALTER TABLE items ENABLE ALWAYS TRIGGER meet");
  handle({{.kind = ConflictKind::insert_exists, .action = ConflictAction::maximum, .by = "amount"}});
  apply([&] { h.insert("items", {1, "ours", 20, 2}); });
  EXPECT_EQ(h.select(kRows), "1|ours|20|2");
  EXPECT_EQ(h.select(kLog), "");
  EXPECT_EQ(h.select("SELECT last_value FROM calls"), "4") << "in a group, alone, settling, once more";
}

TEST_F(Resolutions, AnInsertThatMeetsARowWithAnotherKeyIsNotCombined) {
  h.run("ALTER TABLE items ADD UNIQUE (stock); INSERT INTO items VALUES (7, 'theirs', 10, 2)");
  handle({{.kind = ConflictKind::insert_exists, .action = ConflictAction::maximum, .by = "amount"}});
  apply([&] { h.insert("items", {1, "ours", 20, 2}); });
  EXPECT_EQ(h.select(kRows), "7|theirs|10|2");
  EXPECT_EQ(h.select("SELECT message LIKE '%no row with this key' FROM thalweg.error_queue"), "t");
}

TEST_F(Resolutions, TheLatestCommitNeedsAServerThatKeepsTheirTimes) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 10, 5)");
  handle({{.kind = kDiffers, .action = ConflictAction::latest}});
  apply([&] { h.update_full("items", {1, "old", 1, 1}, {1, "ours", 20, 2}); });
  if (h.select("SHOW track_commit_timestamp") == "on") {
    EXPECT_EQ(h.select(kRows), "1|ours|20|2");
  } else {
    EXPECT_EQ(h.select("SELECT message LIKE '%track_commit_timestamp%' FROM thalweg.error_queue"), "t");
  }
}

TEST_F(Resolutions, TheSiteThatStandsFirstWins) {
  h.run(
      "INSERT INTO items VALUES (1, 'branch', 1, 1), (2, 'head', 1, 1), (3, 'unknown', 1, 1), (4, NULL, 1, 1), "
      "(5, 'branch', 1, 1)");
  handle({{.kind = kDiffers, .action = ConflictAction::priority, .by = "name", .order = {"head", "it's", "branch"}}});
  apply([&] {
    h.update_full("items", {1, "old", 5, 5}, {1, "it's", 20, 2});
    h.update_full("items", {2, "old", 5, 5}, {2, "it's", 20, 2});
    h.update_full("items", {3, "old", 5, 5}, {3, "branch", 20, 2});
    h.update_full("items", {4, "old", 5, 5}, {4, "another", 20, 2});
    h.update_full("items", {5, "old", 5, 5}, {5, nullptr, 20, 2});
  });
  EXPECT_EQ(h.select(kRows), "1|it's|20|2,2|head|1|1,3|branch|20|2,4|NULL|1|1,5|branch|1|1");
  EXPECT_EQ(h.select("SELECT action, count(*) FROM thalweg.conflict_log GROUP BY 1"), "priority|5");
}

TEST_F(Resolutions, OfTwoRowsOfOneSiteTheTieDecides) {
  h.run("INSERT INTO items VALUES (1, 'head', 1, 1), (2, 'unknown', 1, 1)");
  handle({{.kind = ConflictKind::insert_exists,
           .action = ConflictAction::priority,
           .by = "name",
           .tie_overwrites = true,
           .order = {"head"}}});
  apply([&] {
    h.insert("items", {1, "head", 20, 2});
    h.insert("items", {2, "another", 20, 2});
  });
  EXPECT_EQ(h.select(kRows), "1|head|20|2,2|another|20|2") << "values that are not in the list are the same";
}

class Contents : public Resolutions {
 protected:
  void SetUp() override {
    Resolutions::SetUp();
    h.run("CREATE TABLE notes (id int PRIMARY KEY, tags text[], facts jsonb)");
    h.describe("notes", 'f');
    table_ = "\"public\".\"notes\"";
    handle({{.kind = kDiffers, .action = ConflictAction::append, .columns = {"tags"}},
            {.kind = kDiffers, .action = ConflictAction::merge, .columns = {"facts"}},
            {.kind = ConflictKind::insert_exists, .action = ConflictAction::append, .columns = {"tags"}},
            {.kind = ConflictKind::insert_exists, .action = ConflictAction::merge, .columns = {"facts"}}});
  }
  // In the server's binary form.
  Cell tags(const std::string& value) {
    const std::string hex = h.select("SELECT encode(array_send('" + value + "'::text[]), 'hex')");
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
  }
  Cell facts(const std::string& value) { return "\x01" + value; }
};

TEST_F(Contents, ElementsThatTheDestinationLacksAreAppendedInTheirOrder) {
  h.run(
      "INSERT INTO notes VALUES (1, '{a,theirs}', '{}'), (2, NULL, '{}'), (3, '{theirs}', '{}'), "
      "(4, '{theirs,NULL}', '{}')");
  apply([&] {
    h.update_full("notes", {1, tags("{a}"), facts("{}")}, {1, tags("{z,a,b}"), facts("{}")});
    h.update_full("notes", {2, tags("{a}"), facts("{}")}, {2, tags("{a,b}"), facts("{}")});
    h.update_full("notes", {3, tags("{a}"), facts("{}")}, {3, nullptr, facts("{}")});
    h.update_full("notes", {4, tags("{}"), facts("{}")}, {4, tags("{NULL,c}"), facts("{}")});
  });
  EXPECT_EQ(h.select("SELECT id, tags FROM notes ORDER BY id"),
            "1|{a,theirs,z,b},2|{a,b},3|{theirs},4|{theirs,NULL,c}");
}

TEST_F(Contents, MembersAreMergedAsTheSourceHasChangedThem) {
  h.run(R"(INSERT INTO notes VALUES (1, '{}', '{"a": 1, "b": 1, "c": 1, "d": 9, "theirs": 1}'), (2, '{}', NULL),
           (3, '{}', '{"theirs": 1}'))");
  const Cell before = facts(R"({"a": 1, "b": 1, "c": 1, "d": 1})");
  apply([&] {
    h.update_full("notes", {1, tags("{}"), before},
                  {1, tags("{}"), facts(R"({"a": 2, "b": 1, "d": 1, "n": null, "deep": {"x": [1]}})")});
    h.update_full("notes", {2, tags("{}"), before}, {2, tags("{}"), facts(R"({"a": 2})")});
    h.update_full("notes", {3, tags("{}"), nullptr}, {3, tags("{}"), facts(R"({"a": 2})")});
  });
  EXPECT_EQ(h.select("SELECT id, facts FROM notes ORDER BY id"),
            R"(1|{"a": 2, "b": 1, "d": 9, "n": null, "deep": {"x": [1]}, "theirs": 1},2|{"a": 2},)"
            R"(3|{"a": 2, "theirs": 1})")
      << "a changed, c removed, n and deep added by the source; d and theirs are the destination's";
}

TEST_F(Contents, ARowThatIsThereIsMergedWithAnInsert) {
  h.run(R"(INSERT INTO notes VALUES (1, '{x}', '{"a": 1, "theirs": 1}'))");
  apply([&] { h.insert("notes", {1, tags("{y}"), facts(R"({"a": 2})")}); });
  EXPECT_EQ(h.select("SELECT tags, facts FROM notes"), R"({x,y}|{"a": 2, "theirs": 1})");
  EXPECT_EQ(h.select(kLog), "insert_exists|combined|1");
}

TEST_F(Contents, WhatHasNoElementsOrMembersIsNotSettled) {
  h.run(R"(INSERT INTO notes VALUES (1, '{{a,b},{c,d}}', '{}'), (2, '{a}', '[1]'), (3, '{a}', '{}'))");
  const auto change = [&](int64_t id, const Cell& to_tags, const Cell& to_facts) {
    h.begin();
    h.update_full("notes", {id, tags("{}"), facts(R"({"o": 1})")}, {id, to_tags, to_facts});
    h.commit();
  };
  change(1, tags("{e}"), facts("{}"));
  change(2, tags("{e}"), facts(R"({"a": 1})"));
  change(3, tags("{{e}}"), facts("{}"));
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select("SELECT id, tags, facts FROM notes ORDER BY id"), "1|{{a,b},{c,d}}|{},2|{a}|[1],3|{a}|{}");
  EXPECT_EQ(h.select("SELECT message LIKE '%multidimensional%', message LIKE '%non-object%' FROM thalweg.error_queue "
                     "ORDER BY commit_lsn"),
            "t|f,f|t,t|f");
}

TEST_F(Resolutions, AnExpressionReadsAllThreeRows) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 100, 7)");
  handle({{.kind = kDiffers,
           .action = ConflictAction::expression,
           .columns = {"amount"},
           .expression = "t.amount + new.amount - old.amount -- as delta does"},
          {.kind = kDiffers,
           .action = ConflictAction::expression,
           .columns = {"name"},
           .expression = "pg_catalog.concat_ws('/', old.name, new.name, t.name, new.id)"},
          {.kind = kDiffers, .action = ConflictAction::overwrite}});
  apply([&] { h.update_full("items", {1, "old", 50, 5}, {1, "ours", 60, 2}); });
  EXPECT_EQ(h.select(kRows), "1|old/ours/theirs/1|110|2");
  EXPECT_EQ(h.select(kLog), "update_origin_differs|combined|1");
}

TEST_F(Resolutions, AnInsertHasNoOldRow) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 100, 7)");
  handle({{.kind = ConflictKind::insert_exists,
           .action = ConflictAction::expression,
           .columns = {"amount"},
           .expression = "coalesce(old.amount, greatest(new.amount, t.amount))"},
          {.kind = ConflictKind::insert_exists, .action = ConflictAction::discard}});
  apply([&] { h.insert("items", {1, "ours", 160, 2}); });
  EXPECT_EQ(h.select(kRows), "1|theirs|160|7");
}

TEST_F(Resolutions, AnExpressionThatFailsLeavesTheChangeToThePolicies) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 0, 7)");
  handle({{.kind = kDiffers,
           .action = ConflictAction::expression,
           .columns = {"amount"},
           .expression = "new.amount / t.amount"},
          {.kind = kDiffers, .action = ConflictAction::overwrite}});
  apply([&] { h.update_full("items", {1, "old", 50, 5}, {1, "ours", 60, 2}); });
  EXPECT_EQ(h.select(kRows), "1|theirs|0|7");
  EXPECT_EQ(h.select("SELECT message LIKE '%division by zero' FROM thalweg.error_queue"), "t");
}

TEST_F(Resolutions, AnExpressionThatTheServerRefusesSettlesNothing) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 0, 7), (2, 'theirs', 0, 7), (3, 'theirs', 0, 7)");
  int64_t id = 0;
  for (const char* expression : {"1); DROP TABLE public.items; SELECT (1", "public.gone(new.amount)", "new.gone"}) {
    ++id;
    h.parameters.conflict_handlers.clear();
    handle({{.kind = kDiffers, .action = ConflictAction::expression, .columns = {"amount"}, .expression = expression},
            {.kind = kDiffers, .action = ConflictAction::overwrite}});
    apply([&] { h.update_full("items", {id, "old", 50, 5}, {id, "ours", 60, 2}); });
  }
  EXPECT_EQ(h.select(kRows), "1|theirs|0|7,2|theirs|0|7,3|theirs|0|7");
  EXPECT_EQ(h.select("SELECT message LIKE '%syntax error%', message LIKE '%does not exist%' FROM "
                     "thalweg.error_queue ORDER BY commit_lsn"),
            "t|f,f|t,f|t");
}

class CommitTimes : public Resolutions {
 protected:
  static void SetUpTestSuite() { keep_times("on"); }
  static void TearDownTestSuite() { keep_times("off"); }
  static void keep_times(const std::string& keeps) {
    {
      auto admin = pg::Connection::open(test::shared_cluster().conninfo(), {.search_path = "public"});
      ASSERT_TRUE(admin) << admin.error().message;
      ASSERT_TRUE(admin->query("ALTER SYSTEM SET track_commit_timestamp = " + keeps));
    }
    test::shared_cluster().restart();
  }
  void commit(const Row& old_row, const Row& row) {
    h.begin();
    h.update_full("items", old_row, row);
    h.commit();
  }
};

TEST_F(CommitTimes, TheLaterCommitWinsHoweverLateItIsApplied) {
  h.run("INSERT INTO items VALUES (1, 'old', 1, 1), (2, 'theirs', 2, 2), (3, 'old', 3, 3)");
  handle({{.kind = kDiffers, .action = ConflictAction::latest}});
  commit({1, "old", 1, 1}, {1, "ours", 10, 2});
  h.begin();
  h.update_full("items", {3, "old", 3, 3}, {3, "ours", 30, 3});
  h.update_full("items", {3, "ours", 30, 3}, {3, "ours again", 31, 3});
  h.commit();
  h.run("UPDATE items SET name = 'theirs', amount = 0 WHERE id IN (1, 3)");
  commit({2, "old", 2, 2}, {2, "ours", 20, 2});
  commit({1, "ours", 10, 2}, {1, "last", 11, 2});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kRows), "1|last|11|2,2|ours|20|2,3|theirs|0|3");
  EXPECT_EQ(h.select("SELECT action, count(*) FROM thalweg.conflict_log GROUP BY 1"), "latest|5");
}

TEST_F(CommitTimes, AKeyThatMovesIsNotDecidedByThem) {
  h.run("INSERT INTO items VALUES (1, 'theirs', 1, 1)");
  handle({{.kind = kDiffers, .action = ConflictAction::latest}});
  commit({1, "old", 1, 1}, {2, "ours", 10, 2});
  const auto error = h.start_and_finish();
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(h.select(kRows), "1|theirs|1|1");
  EXPECT_EQ(h.select("SELECT message LIKE '%no time of a commit can decide%' FROM thalweg.error_queue"), "t");
}

}  // namespace
}  // namespace thalweg::apply
