#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "capture/row_filter_harness.h"

// Changes of a table with transformations, whose columns change.

namespace thalweg::capture {
namespace {

using base::ErrorCode;
using transform::Step;
using transform::StepKind;

class TransformedRowsTest : public RowFilterTest {
 protected:
  static Step mask(std::string column) {
    return {.kind = StepKind::mask_column, .column = std::move(column), .to = {}, .mask = {}};
  }
  static Step keep(std::vector<std::string> columns) {
    return {.kind = StepKind::keep_columns, .column = {}, .to = {}, .mask = {}, .columns = std::move(columns)};
  }
  // "RENAME a TO b; DROP c"
  void alter(const std::string& actions) {
    size_t begin = 0;
    while (begin < actions.size()) {
      const size_t end = std::min(actions.find("; ", begin), actions.size());
      run("ALTER TABLE ruled.orders " + actions.substr(begin, end - begin));
      begin = end + 2;
    }
  }
  void open_with(transform::Steps steps) {
    open({}, {});
    rules_.transformations[{"ruled", "orders"}] = std::move(steps);
    begin_session();
    go_on();
  }
};

TEST_F(TransformedRowsTest, RulesSeeTheRowAsItIsAndTheQueueAsItIsSent) {
  using transform::Step, transform::StepKind, transform::MaskKind;
  open({}, std::vector{rule("note = 'secret'", true)});
  rules_.transformations[{"ruled", "orders"}] = {
      Step{.kind = StepKind::drop_column, .column = "region", .to = {}, .mask = {}},
      Step{.kind = StepKind::rename_column, .column = "note", .to = "remark", .mask = {}},
      Step{.kind = StepKind::mask_column,
           .column = "remark",
           .to = {},
           .mask = {.kind = MaskKind::constant, .value = "xx"}}};
  begin_session();
  describe("orders", 'f');
  EXPECT_EQ(words_of(insert({"1", "north", "secret"})), Words{"I 1,xx"});
  EXPECT_EQ(words_of(insert({"2", "north", "open"})), Words{});
  EXPECT_EQ(words_of(update({"1", "south", "secret"}, 'O', {"1", "north", "secret"})), Words{"U 1,xx"});
  EXPECT_EQ(words_of(update({"2", "north", "secret"}, 'O', {"2", "north", "open"})), Words{"I 2,xx"});
  EXPECT_EQ(words_of(update({"2", "north", "open"}, 'O', {"2", "north", "secret"})), Words{"D row 2,xx"});
  // They are the relation's, whatever its name is.
  run("ALTER TABLE ruled.orders RENAME TO plain_orders");
  PgoutputBytes renamed('R');
  renamed.u32(oid("plain_orders")).text("ruled").text("plain_orders").raw("f").u16(3);
  for (const char* const column : {"id", "region", "note"}) {
    renamed.u8(1).text(column).u32(column == std::string_view("id") ? 23 : 25).u32(0xFFFFFFFF);
  }
  ASSERT_TRUE(feed(renamed));
  EXPECT_EQ(words_of(insert_bytes(0, oid("plain_orders"), {"3", "north", "secret"})), Words{"I 3,xx"});
}

TEST_F(TransformedRowsTest, AColumnThatIsGoneStopsItsTransformations) {
  open({}, {});
  rules_.transformations[{"ruled", "orders"}] = {
      transform::Step{.kind = transform::StepKind::mask_column, .column = "note", .to = {}, .mask = {}}};
  begin_session();
  EXPECT_TRUE(filters_->sample().empty()) << "it has no rules that count";
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "secret"})), Words{"I 1,north,-"});
  PgoutputBytes without('R');
  without.u32(oid("orders")).text("ruled").text("orders").raw("d").u16(2);
  without.u8(1).text("id").u32(23).u32(0xFFFFFFFF).u8(0).text("region").u32(25).u32(0xFFFFFFFF);
  ASSERT_TRUE(feed(without));
  EXPECT_EQ(words_of(insert({"2", "north"})), Words{"transformation_refused"});
}

TEST_F(TransformedRowsTest, AMaskedColumnThatGetsAnotherNameStopsItsTransformations) {
  using transform::Step, transform::StepKind;
  open({}, {});
  const auto folder = std::filesystem::temp_directory_path() / ("forms-" + std::to_string(::getpid()));
  rules_.relations_file = folder / "relations.json";
  const auto describe_as = [&](const std::vector<std::string>& columns) { ASSERT_TRUE(feed(orders_as(columns))); };
  rules_.transformations[{"ruled", "orders"}] = {mask("note")};
  begin_session();
  go_on();
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "secret"})), Words{"I 1,north,-"});
  // A column that no step names may have another name, and others may come and go.
  run("ALTER TABLE ruled.orders RENAME region TO part; ALTER TABLE ruled.orders ADD more text");
  const base::Lsn with_more = go_on();
  describe_as({"id", "part", "note", "more"});
  EXPECT_EQ(words_of(insert({"2", "north", "secret", "a"})), (Words{"I 2,north,-,a"}));
  run("ALTER TABLE ruled.orders DROP more; ALTER TABLE ruled.orders RENAME part TO region");
  const base::Lsn without = go_on();
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), Words{"I 3,north,-"});
  // After a restart, changes are read again.
  begin_session();
  lsn_ = with_more;
  describe_as({"id", "part", "note", "more"});
  EXPECT_EQ(words_of(insert({"2", "north", "secret", "a"})), (Words{"I 2,north,-,a"}));
  lsn_ = without;
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), Words{"I 3,north,-"});

  run("ALTER TABLE ruled.orders RENAME region TO x; ALTER TABLE ruled.orders RENAME note TO region; "
      "ALTER TABLE ruled.orders RENAME x TO note");
  go_on();
  for (int session = 0; session < 2; ++session) {
    describe_as({"id", "note", "region"});
    EXPECT_EQ(words_of(insert({"4", "north", "secret"})), Words{"transformation_refused"});
    begin_session();
  }
  // Others were given: changes of the former form come once more, then those of the new one.
  rules_.transformations[{"ruled", "orders"}] = {mask("note"), mask("region")};
  begin_session();
  const base::Lsn exchanged = std::exchange(lsn_, without);
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), (Words{"I 3,-,-"}));
  lsn_ = exchanged;
  describe_as({"id", "note", "region"});
  EXPECT_EQ(words_of(insert({"4", "north", "secret"})), (Words{"I 4,-,-"}));

  // The table never had so many columns.
  describe_as({"id", "note", "old", "region"});
  EXPECT_EQ(words_of(insert({"5", "north", "secret", "new"})), Words{"transformation_refused"});
  std::filesystem::remove_all(folder);
}

// The catalogue has gone on by the time the change is read.
TEST_F(TransformedRowsTest, AColumnThatIsNotKeptDoesNotComeUnderAKeptName) {
  struct Case {
    const char* before;
    const char* after;
    std::vector<std::string> columns;
  };
  const std::vector<Case> cases{
      {"RENAME note TO x; RENAME region TO note", "RENAME x TO y", {"id", "note", "x"}},
      {"RENAME note TO x; RENAME region TO note", "RENAME note TO region; RENAME x TO note", {"id", "note", "x"}},
      {"DROP note; RENAME region TO note", "ADD z text", {"id", "note"}},
      {"DROP note; RENAME region TO note", "DROP note; ADD note text", {"id", "note"}},
      {"DROP note; RENAME region TO note; ADD region text", "ADD z text", {"id", "note", "region"}},
  };
  for (const transform::Steps& steps : {transform::Steps{keep({"id", "note"})}, transform::Steps{mask("region")}}) {
    for (const Case& test_case : cases) {
      SetUp();
      open_with(steps);
      describe("orders");
      EXPECT_EQ(words_of(insert({"1", "secret", "open"})).size(), 1U);
      alter(test_case.before);
      go_on();
      alter(test_case.after);
      ASSERT_TRUE(feed(orders_as(test_case.columns)));
      EXPECT_EQ(words_of(insert(Row(test_case.columns.size(), "secret"))), Words{"transformation_refused"})
          << test_case.before << " / " << test_case.after;
    }
  }
}

// Numbers decide, where the catalogue has the table in no such form any more.
TEST_F(TransformedRowsTest, OrdinaryChangesGoOnWhileTheCatalogueIsAhead) {
  struct Case {
    const char* before;
    const char* after;
    std::vector<std::string> columns;
    const char* sent;
  };
  const std::vector<Case> cases{
      {"ADD a text", "ADD b text; ADD c text", {"id", "region", "note", "a"}, "I 1,north,-,x"},
      {"ADD a text", "DROP a; ADD b text", {"id", "region", "note", "a"}, "I 1,north,-,x"},
      {"ADD a text", "DROP region", {"id", "region", "note", "a"}, "I 1,north,-,x"},
      {"ADD a text; ADD b text", "RENAME a TO c; ADD d text", {"id", "region", "note", "a", "b"}, "I 1,north,-,x,x"},
      {"DROP region", "ADD a text", {"id", "note"}, "I 1,-"},
  };
  for (const Case& test_case : cases) {
    SetUp();
    run("ALTER TABLE ruled.orders ADD old text; ALTER TABLE ruled.orders DROP old");
    open_with({mask("note")});
    describe("orders");
    EXPECT_EQ(words_of(insert({"1", "north", "secret"})), Words{"I 1,north,-"});
    alter(test_case.before);
    go_on();
    alter(test_case.after);
    ASSERT_TRUE(feed(orders_as(test_case.columns)));
    Row row(test_case.columns.size(), "x");
    row[0] = "1";
    if (test_case.columns[1] == "region") row[1] = "north";
    EXPECT_EQ(words_of(insert(row)), Words{test_case.sent}) << test_case.before << " / " << test_case.after;
  }
}

// A table that nobody changed before: the steps were given for the columns that it had.
TEST_F(TransformedRowsTest, TheFirstChangeMayNotBringAnotherColumn) {
  open_with({keep({"id", "note"})});
  alter("DROP note; RENAME region TO note");
  go_on();
  ASSERT_TRUE(feed(orders_as({"id", "note"})));
  EXPECT_EQ(words_of(insert({"1", "secret"})), Words{"transformation_refused"});
}

TEST_F(TransformedRowsTest, ADroppedTableCannotBeTold) {
  open_with({mask("note")});
  describe("orders");
  const PgoutputBytes row = insert({"1", "north", "secret"});
  EXPECT_EQ(words_of(row), Words{"I 1,north,-"});
  const PgoutputBytes described = orders_as({"id", "note", "region"});
  go_on();
  run("DROP TABLE ruled.orders");
  ASSERT_TRUE(feed(described));
  EXPECT_EQ(words_of(row), Words{"transformation_refused"});
}

// An open transaction of the server's, whose messages are made here.
class OpenTransactionTest : public TransformedRowsTest {
 protected:
  void begin(const std::string& sql) {
    oid_ = oid("orders");
    open_with({mask("note")});
    ASSERT_TRUE(feed(commit_bytes()));
    if (!other_) {
      auto opened = pg::Connection::open(conninfo_, {});
      ASSERT_TRUE(opened) << opened.error().message;
      other_.emplace(*std::move(opened));
    }
    const auto begun = other_->script("BEGIN; INSERT INTO ruled.orders VALUES (8, 'a', 'b'); " + sql);
    ASSERT_TRUE(begun) << begun.error().message;
    const auto xid = other_->query("SELECT pg_current_xact_id()::text::bigint % 4294967296");
    ASSERT_TRUE(xid) << xid.error().message;
    xid_ = static_cast<uint32_t>(xid->integer(0, 0));
    go_on();
    ASSERT_TRUE(feed(PgoutputBytes('S').u32(xid_).u8(1)));
    ASSERT_TRUE(feed(orders_as({"id", "region", "note"}, xid_)));
  }
  void end(const std::string& sql) {
    const auto ended = other_->script(sql);
    ASSERT_TRUE(ended) << ended.error().message;
  }
  PgoutputBytes row() const { return insert_bytes(xid_, oid_, {"1", "north", "secret"}); }
  Words commit() {
    EXPECT_TRUE(feed(PgoutputBytes('E')));
    EXPECT_TRUE(feed(PgoutputBytes('k').u32(xid_).u32(0)));
    return words_of(PgoutputBytes('c').u32(xid_).u8(0).u64(0x100).u64(0x140).u64(1));
  }
  // The names are the same, and the numbers are not.
  const std::string exchange_ =
      "ALTER TABLE ruled.orders DROP region; ALTER TABLE ruled.orders RENAME note TO region; "
      "ALTER TABLE ruled.orders ADD note text";
  std::optional<pg::Connection> other_;
  uint32_t xid_ = 0, oid_ = 0;
};

TEST_F(OpenTransactionTest, ItsRowsComeAtOnce) {
  begin("SELECT 1");
  EXPECT_EQ(words_of(row()), Words{"I 1,north,-"});
  end("COMMIT");
  EXPECT_EQ(commit(), Words{});
}

TEST_F(OpenTransactionTest, ColumnsThatItHasChangedWaitForItsEnd) {
  begin(exchange_);
  EXPECT_EQ(words_of(row()), Words{});
  end("ROLLBACK");
  EXPECT_EQ(words_of(row()), Words{}) << "of this one, nothing comes any more";
  ASSERT_TRUE(feed(PgoutputBytes('E')));
  ASSERT_TRUE(feed(PgoutputBytes('A').u32(xid_).u32(xid_)));
  go_on();
  ASSERT_TRUE(feed(begin_bytes(7)));
  ASSERT_TRUE(feed(orders_as({"id", "region", "note"})));
  EXPECT_EQ(words_of(insert({"2", "north", "secret"})), Words{"I 2,north,-"});
}

TEST_F(OpenTransactionTest, ColumnsThatItHasChangedAreReadAgainWhenItHasCommitted) {
  begin(exchange_);
  EXPECT_EQ(words_of(row()), Words{});
  end("COMMIT");
  EXPECT_EQ(commit(), Words{"database_busy"});
  // Read again before its end, as a large one is.
  begin_session();
  ASSERT_TRUE(feed(commit_bytes()));
  ASSERT_TRUE(feed(PgoutputBytes('S').u32(xid_).u8(1)));
  ASSERT_TRUE(feed(orders_as({"id", "region", "note"}, xid_)));
  EXPECT_EQ(words_of(row()), Words{"transformation_refused"});
}

TEST_F(OpenTransactionTest, ASavepointThatIsRolledBackIsForgotten) {
  begin("SAVEPOINT s; " + exchange_ + "; INSERT INTO ruled.orders VALUES (9)");
  const auto child = other_->query("SELECT xmin::text::bigint FROM ruled.orders WHERE id = 9");
  ASSERT_TRUE(child) << child.error().message;
  const auto subxid = static_cast<uint32_t>(child->integer(0, 0));
  ASSERT_NE(subxid, xid_);
  EXPECT_EQ(words_of(insert_bytes(subxid, oid_, {"1", "north", "secret"})), Words{});
  end("ROLLBACK TO s; COMMIT");
  EXPECT_EQ(commit(), Words{});
}

TEST_F(OpenTransactionTest, ARolledBackSavepointHoldsNothingElseBack) {
  begin("SAVEPOINT s; INSERT INTO ruled.orders VALUES (9)");
  const auto child = other_->query("SELECT xmin::text::bigint FROM ruled.orders WHERE id = 9");
  ASSERT_TRUE(child) << child.error().message;
  const auto subxid = static_cast<uint32_t>(child->integer(0, 0));
  ASSERT_NE(subxid, xid_);
  // A large transaction comes in pieces when it is read again, too, and begins with what was rolled back.
  end("ROLLBACK TO s; COMMIT");
  EXPECT_EQ(words_of(insert_bytes(subxid, oid_, {"1", "north", "secret"})), Words{});
  EXPECT_EQ(words_of(row()), Words{"I 1,north,-"});
  EXPECT_EQ(commit(), Words{});
}

TEST_F(TransformedRowsTest, ExpressionsAreComputedOfWhatTheRulesLetPass) {
  open({}, std::vector{rule("region <> 'hidden'")});
  rules_.transformations[{"ruled", "orders"}] = {
      Step{.kind = StepKind::add_column,
           .column = "what",
           .to = {},
           .mask = {},
           .type = "text",
           .expression = "region || '@' || source"},
      Step{.kind = StepKind::cast_column, .column = "note", .to = {}, .mask = {}, .type = "boolean"}};
  begin_session();
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", kNull})), Words{"I 1,north,-,north@here"});
  EXPECT_EQ(words_of(insert({"2", "hidden", "no boolean"})), Words{});
  const auto failed = feed(insert({"3", "north", "no boolean"}));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::transformation_refused);
  EXPECT_EQ(failed.error().sqlstate, "22P02");
  EXPECT_EQ(failed.error().xid, base::Xid{7});
  EXPECT_EQ(failed.error().message.find("no boolean"), std::string::npos);
}

// A text that compares by a collation is refused, which only the source's catalogue can tell.
TEST_F(TransformedRowsTest, ExpressionsAreTypedByTheSourcesCatalogue) {
  const auto stands = [&](const std::string& text) {
    open_with({Step{
        .kind = StepKind::add_column, .column = "what", .to = {}, .mask = {}, .type = "boolean", .expression = text}});
    describe("orders");
    return words_of(insert({"1", "north", "x"})).front().starts_with("I ");
  };
  EXPECT_FALSE(stands("region < 'm'"));
  run("ALTER TABLE ruled.orders ALTER region TYPE text COLLATE \"C\"");
  EXPECT_TRUE(stands("region < 'm'"));
}

// One that nothing but an expression names is not replaced by another under its name.
TEST_F(TransformedRowsTest, AColumnThatAnExpressionReadsKeepsItsName) {
  open_with({keep({"id"}), Step{.kind = StepKind::add_column,
                                .column = "what",
                                .to = {},
                                .mask = {},
                                .type = "text",
                                .expression = "source"}});
  // The steps read nothing of note: it may have another name.
  ASSERT_TRUE(feed(orders_as({"id", "region", "note"})));
  EXPECT_EQ(words_of(insert({"1", "north", "x"})), Words{"I 1,here"});
  open_with(
      {Step{.kind = StepKind::add_column, .column = "what", .to = {}, .mask = {}, .type = "text", .expression = "note"},
       keep({"id", "what"})});
  ASSERT_TRUE(feed(orders_as({"id", "region", "note"})));
  EXPECT_EQ(words_of(insert({"1", "north", "x"})), Words{"I 1,x"});
  alter("RENAME note TO gone; RENAME region TO note");
  go_on();
  ASSERT_TRUE(feed(orders_as({"id", "note", "gone"})));
  EXPECT_EQ(words_of(insert({"2", "south", "y"})), Words{"transformation_refused"});
}

}  // namespace
}  // namespace thalweg::capture
