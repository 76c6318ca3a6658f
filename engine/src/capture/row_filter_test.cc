#include "capture/row_filter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_bytes.h"
#include "support/test_cluster.h"

// A translator with filters: the tables are a server's, the messages about them are made here.

namespace thalweg::capture {
namespace {

using base::ErrorCode;
using rules::Rule;

const std::string kNull(1, '\0');

// Frames in words: "I id,region,note", "U ...", "D id,..,..", "T".
class WordSink final : public FrameSink {
 public:
  std::span<std::byte> reserve(size_t frame_bytes) override {
    reserved_.assign(frame_bytes, std::byte{0xEE});
    return reserved_;
  }
  void enqueue() override {
    const auto frame = lcr::FrameView::decode(reserved_);
    ASSERT_TRUE(frame) << frame.error().message;
    switch (frame->kind()) {
      case lcr::FrameKind::insert:
        words.push_back("I " + tuple(frame->new_tuple()));
        break;
      case lcr::FrameKind::update:
        words.push_back("U " + tuple(frame->new_tuple()));
        break;
      case lcr::FrameKind::remove:
        words.push_back((frame->has(lcr::kOldRow) ? "D row " : "D key ") + tuple(frame->old_tuple()));
        break;
      case lcr::FrameKind::truncate:
        words.push_back("T " + std::to_string(frame->truncated_relations().size()));
        break;
      default:
        break;
    }
    last = reserved_;
  }
  std::vector<std::string> take() { return std::exchange(words, {}); }
  std::vector<std::string> words;
  std::vector<std::byte> last;

 private:
  static std::string tuple(const lcr::TupleView& view) {
    std::vector<lcr::Value> values;
    view.read(values);
    std::string text;
    for (const lcr::Value& value : values) {
      if (!text.empty()) text += ',';
      text += value.mark == lcr::ValueMark::null ? "-"
              : value.mark == lcr::ValueMark::unchanged
                  ? "?"
                  : std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    }
    return text;
  }
  std::vector<std::byte> reserved_;
};

class RowFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    conninfo_ = test::shared_cluster().conninfo();
    auto opened = pg::Connection::open(conninfo_, {});
    ASSERT_TRUE(opened) << opened.error().message;
    source_.emplace(*std::move(opened));
    run("DROP SCHEMA IF EXISTS ruled CASCADE; CREATE SCHEMA ruled; "
        "CREATE TABLE ruled.orders (id integer PRIMARY KEY, region text, note text); "
        "CREATE TABLE ruled.plain (id integer PRIMARY KEY, region text, note text)");
  }
  void run(const std::string& sql) {
    const auto done = source_->script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  uint32_t oid(const std::string& table) {
    const auto rows = source_->query("SELECT $1::regclass::oid", {"ruled." + table});
    EXPECT_TRUE(rows) << rows.error().message;
    return static_cast<uint32_t>(rows->integer(0, 0));
  }

  static Rule rule(std::string condition, bool subset = false, uint8_t kinds = rules::kEveryKind) {
    return {
        .name = "r", .schema = {}, .table = {}, .kinds = kinds, .condition = std::move(condition), .subset = subset};
  }
  // A session whose stream has both tables, and rules for orders.
  void open(std::optional<std::vector<Rule>> negative, std::optional<std::vector<Rule>> positive) {
    rules_ = {.tables = {{{"ruled", "orders"}, {.negative = std::move(negative), .positive = std::move(positive)}}},
              .transformations = {},
              .others = {{"ruled", "plain"}},
              .source = "here",
              .relations_file = {}};
    begin_session();
  }
  void begin_session() {
    filters_ = std::make_unique<RowFilters>(rules_, conninfo_, pg::ConnectOptions{}, clock_);
    const auto located = filters_->locate();
    ASSERT_TRUE(located) << located.error().message;
    sink_ = WordSink();
    translator_ = std::make_unique<FrameTranslator>(sink_, filters_.get());
    parser_ = PgoutputParser{};
    ASSERT_TRUE(feed(begin_bytes(7)));
  }
  base::Result<bool> feed(const PgoutputBytes& bytes) {
    const auto parsed = parser_.parse(bytes);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return translator_->translate(**parsed, parser_, {0x90});
  }
  void describe(const std::string& table, char identity = 'd', uint32_t region_type = 25) {
    PgoutputBytes bytes('R');
    bytes.u32(oid(table)).text("ruled").text(table).raw(std::string(1, identity)).u16(3);
    const auto flag = [&](bool key) { return static_cast<uint8_t>(key || identity == 'f' ? 1 : 0); };
    bytes.u8(flag(true)).text("id").u32(23).u32(0xFFFFFFFF);
    bytes.u8(flag(false)).text("region").u32(region_type).u32(0xFFFFFFFF);
    bytes.u8(flag(false)).text("note").u32(25).u32(0xFFFFFFFF);
    ASSERT_TRUE(feed(bytes));
  }
  using Row = std::vector<std::string>;
  PgoutputBytes insert(const Row& row) { return insert_bytes(0, oid("orders"), row); }
  // `letter`: O or K, and the old row; none: nothing of the old row came. "?" is a value that did not change.
  PgoutputBytes update(const Row& row, char letter = 0, const Row& old_row = {}) {
    PgoutputBytes bytes('U');
    bytes.u32(oid("orders"));
    if (letter != 0) bytes.raw(std::string(1, letter)).tuple(old_row);
    bytes.raw("N").u16(static_cast<uint16_t>(row.size()));
    for (const std::string& value : row) {
      if (value == "?") {
        bytes.raw("u");
      } else {
        bytes.raw("t").u32(static_cast<uint32_t>(value.size())).raw(value);
      }
    }
    return bytes;
  }
  PgoutputBytes remove(char letter, const Row& row) {
    return PgoutputBytes('D').u32(oid("orders")).raw(std::string(1, letter)).tuple(row);
  }
  std::vector<std::string> words_of(const PgoutputBytes& bytes) {
    const auto taken = feed(bytes);
    if (!taken) return {std::string(base::name_of(taken.error().code))};
    EXPECT_TRUE(*taken);
    return sink_.take();
  }
  using Words = std::vector<std::string>;
  // Of orders: passed, dropped, became inserts, became deletes.
  std::array<uint64_t, 4> counted() const {
    const auto tables = filters_->sample();
    EXPECT_EQ(tables.size(), 1U);
    const telemetry::RuleSample& sample = tables.at(0);
    EXPECT_EQ(sample.schema_name + "." + sample.table_name, "ruled.orders");
    return {sample.passed, sample.dropped, sample.became_inserts, sample.became_deletes};
  }
  using Counted = std::array<uint64_t, 4>;

  std::string conninfo_;
  std::optional<pg::Connection> source_;
  base::SystemClock clock_;
  StreamRules rules_;
  WordSink sink_;
  PgoutputParser parser_;
  std::unique_ptr<RowFilters> filters_;
  std::unique_ptr<FrameTranslator> translator_;
};

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

TEST_F(RowFilterTest, RulesSeeTheRowAsItIsAndTheQueueAsItIsSent) {
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

TEST_F(RowFilterTest, AColumnThatIsGoneStopsItsTransformations) {
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

TEST_F(RowFilterTest, AMaskedColumnThatGetsAnotherNameStopsItsTransformations) {
  using transform::Step, transform::StepKind;
  open({}, {});
  const auto folder = std::filesystem::temp_directory_path() / ("forms-" + std::to_string(::getpid()));
  rules_.relations_file = folder / "relations.json";
  const auto mask = [](std::string column) {
    return Step{.kind = StepKind::mask_column, .column = std::move(column), .to = {}, .mask = {}};
  };
  const auto describe_as = [&](const std::vector<std::string>& columns) {
    PgoutputBytes bytes('R');
    bytes.u32(oid("orders")).text("ruled").text("orders").raw("d").u16(static_cast<uint16_t>(columns.size()));
    for (const std::string& column : columns) {
      const bool is_key = column == "id";
      bytes.u8(is_key ? 1 : 0).text(column).u32(is_key ? 23 : 25).u32(0xFFFFFFFF);
    }
    ASSERT_TRUE(feed(bytes));
  };
  rules_.transformations[{"ruled", "orders"}] = {mask("note")};
  begin_session();
  describe("orders");
  EXPECT_EQ(words_of(insert({"1", "north", "secret"})), Words{"I 1,north,-"});
  // A column that no step names may have another name, and others may come and go.
  run("ALTER TABLE ruled.orders RENAME region TO part; ALTER TABLE ruled.orders ADD more text");
  describe_as({"id", "part", "note", "more"});
  EXPECT_EQ(words_of(insert({"2", "north", "secret", "a"})), (Words{"I 2,north,-,a"}));
  run("ALTER TABLE ruled.orders DROP more; ALTER TABLE ruled.orders RENAME part TO region");
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), Words{"I 3,north,-"});
  // After a restart, changes are read again.
  begin_session();
  describe_as({"id", "part", "note", "more"});
  EXPECT_EQ(words_of(insert({"2", "north", "secret", "a"})), (Words{"I 2,north,-,a"}));
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), Words{"I 3,north,-"});

  run("ALTER TABLE ruled.orders RENAME region TO x; ALTER TABLE ruled.orders RENAME note TO region; "
      "ALTER TABLE ruled.orders RENAME x TO note");
  for (int session = 0; session < 2; ++session) {
    describe_as({"id", "note", "region"});
    EXPECT_EQ(words_of(insert({"4", "north", "secret"})), Words{"transformation_refused"});
    begin_session();
  }
  // Others were given: changes of the former form come once more, then those of the new one.
  rules_.transformations[{"ruled", "orders"}] = {mask("note"), mask("region")};
  begin_session();
  describe("orders");
  EXPECT_EQ(words_of(insert({"3", "north", "secret"})), (Words{"I 3,-,-"}));
  describe_as({"id", "note", "region"});
  EXPECT_EQ(words_of(insert({"4", "north", "secret"})), (Words{"I 4,-,-"}));

  // By names alone, where the catalogue has another form by now: a mask's column under another name, and a new one.
  describe_as({"id", "note", "old", "region"});
  EXPECT_EQ(words_of(insert({"5", "north", "secret", "new"})), Words{"transformation_refused"});
  run("ALTER TABLE ruled.orders RENAME region TO x; ALTER TABLE ruled.orders RENAME note TO region; "
      "ALTER TABLE ruled.orders RENAME x TO note");
  std::filesystem::remove_all(folder);
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
  rules_.others.insert({"ruled", "third"});
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
