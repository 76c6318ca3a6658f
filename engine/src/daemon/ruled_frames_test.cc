#include "daemon/ruled_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "support/test_cluster.h"

// The tables are a server's, the frames about them are made here.

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using rules::Rule;
using std::chrono::microseconds;

constexpr base::RelationId kPlain{1};

// Frames in the order in which a test puts them.
class ScriptedFrames final : public queue::FrameSource {
 public:
  base::Result<const std::byte*> browse(microseconds) override {
    held_ = !frames.empty();
    return held_ ? frames.front().data() : nullptr;
  }
  void dequeue() override {
    held_ = false;
    frames.pop_front();
  }
  void release() override { held_ = false; }
  bool held() const { return held_; }
  std::deque<std::vector<std::byte>> frames;

 private:
  bool held_ = false;
};

using Row = std::vector<std::string>;  // "-": NULL, "?": a value that did not change and did not come

std::vector<std::byte> tuple(const Row& row) {
  std::vector<lcr::Value> values;
  for (const std::string& value : row) {
    values.push_back(
        {.mark = value == "-"   ? lcr::ValueMark::null
                 : value == "?" ? lcr::ValueMark::unchanged
                                : lcr::ValueMark::text,
         .bytes = value == "-" || value == "?" ? std::span<const std::byte>{} : std::as_bytes(std::span(value))});
  }
  return lcr::make_tuple(values);
}

std::string words(const lcr::TupleView& view) {
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

class RuledFramesTest : public testing::Test {
 protected:
  void SetUp() override {
    conninfo_ = test::shared_cluster().conninfo();
    auto opened = pg::Connection::open(conninfo_, {});
    ASSERT_TRUE(opened) << opened.error().message;
    const auto made = opened->script(
        "DROP SCHEMA IF EXISTS ruled_frames CASCADE; CREATE SCHEMA ruled_frames; "
        "CREATE TABLE ruled_frames.orders (id integer PRIMARY KEY, region text, note text); "
        "ALTER TABLE ruled_frames.orders REPLICA IDENTITY FULL");
    ASSERT_TRUE(made) << made.error().message;
    const auto rows = opened->query("SELECT 'ruled_frames.orders'::regclass::oid");
    ASSERT_TRUE(rows) << rows.error().message;
    orders_ = {static_cast<uint32_t>(rows->integer(0, 0))};
  }
  void open(std::optional<std::vector<Rule>> negative, std::optional<std::vector<Rule>> positive) {
    capture::StreamRules rules{
        .tables = {{{"ruled_frames", "orders"}, {.negative = std::move(negative), .positive = std::move(positive)}}},
        .transformations = {},
        .plain_tables = {{"ruled_frames", "plain"}},
        .source = "here",
        .relations_file = {}};
    ruled_.reset();
    frames_.frames.clear();
    ruled_ = std::make_unique<RuledFrames>(frames_, std::move(rules), conninfo_, pg::ConnectOptions{}, clock_);
    const auto located = ruled_->locate();
    ASSERT_TRUE(located) << located.error().message;
    describe(orders_, "orders", 1);
    describe(kPlain, "plain", 1);
  }
  static Rule rule(std::string condition, bool subset = false, uint8_t kinds = rules::kEveryKind) {
    return {
        .name = "r", .schema = {}, .table = {}, .kinds = kinds, .condition = std::move(condition), .subset = subset};
  }

  void describe(base::RelationId relation, const std::string& name, uint32_t version,
                const std::string& second = "region") {
    const auto column = [](const std::string& of, uint32_t type) {
      return lcr::ColumnDescription{.name = of, .type = {type}, .type_modifier = -1, .is_key = true};
    };
    frames_.frames.push_back(
        lcr::make_table_frame({.relation = relation,
                               .version = version,
                               .schema_name = "ruled_frames",
                               .table_name = name,
                               .replica_identity = 'f',
                               .columns = {column("id", 23), column(second, 25), column("note", 25)}}));
  }
  void put(lcr::FrameKind kind, const Row& old_row, const Row& new_row, uint32_t version = 1,
           std::optional<base::RelationId> relation = {}) {
    const auto old_tuple = old_row.empty() ? std::vector<std::byte>{} : tuple(old_row);
    const auto new_tuple = new_row.empty() ? std::vector<std::byte>{} : tuple(new_row);
    const lcr::RowFrame row{
        .kind = kind,
        .flags = static_cast<uint16_t>(lcr::kStreamed | (old_row.empty() ? 0 : lcr::kOldRow)),
        .xid = {7},
        .subxid = {8},
        .relation = relation.value_or(orders_),
        .table_version = version,
        .lsn = {0x90},
        .old_tuple = old_tuple,
        .new_tuple = new_tuple,
    };
    frames_.frames.emplace_back(lcr::row_frame_bytes(row));
    lcr::write_row_frame(row, frames_.frames.back());
  }
  void insert(const Row& row) { put(lcr::FrameKind::insert, {}, row); }
  void update(const Row& old_row, const Row& new_row) { put(lcr::FrameKind::update, old_row, new_row); }
  void remove(const Row& row) { put(lcr::FrameKind::remove, row, {}); }

  // The changes that the agent gets until there are no more: "I 1,north,a", "U ...", "D ...", "T <tables>"; an error's
  // name at the end, where one ends it.
  std::vector<std::string> taken() {
    std::vector<std::string> out;
    while (true) {
      const auto browsed = ruled_->browse({});
      if (!browsed) {
        out.emplace_back(base::name_of(browsed.error().code));
        return out;
      }
      if (*browsed == nullptr) return out;
      const auto view = lcr::FrameView::trusted(*browsed);
      const auto frame = lcr::FrameView::decode(view.bytes());
      EXPECT_TRUE(frame) << frame.error().message;
      if (lcr::is_change(frame->kind())) out.push_back(word(*frame));
      ruled_->dequeue();
    }
  }
  static std::string word(const lcr::FrameView& frame) {
    EXPECT_EQ(frame.xid(), base::Xid{7});
    EXPECT_EQ(frame.subxid(), base::Xid{8});
    EXPECT_EQ(frame.lsn(), base::Lsn{0x90});
    EXPECT_TRUE(frame.has(lcr::kStreamed));
    switch (frame.kind()) {
      case lcr::FrameKind::insert:
        EXPECT_FALSE(frame.has(lcr::kOldRow));
        return "I " + words(frame.new_tuple());
      case lcr::FrameKind::update:
        return "U " + words(frame.new_tuple());
      case lcr::FrameKind::remove:
        EXPECT_TRUE(frame.has(lcr::kOldRow));
        return "D " + words(frame.old_tuple());
      default:
        return "T " + std::to_string(frame.truncated_relations().size());
    }
  }
  using Words = std::vector<std::string>;
  using Counted = std::array<uint64_t, 4>;  // passed, dropped, became inserts, became deletes
  Counted counted() const {
    const auto tables = ruled_->sample();
    EXPECT_EQ(tables.size(), 1U);
    return {tables[0].passed, tables[0].dropped, tables[0].became_inserts, tables[0].became_deletes};
  }

  std::string conninfo_;
  base::RelationId orders_;
  base::SystemClock clock_;
  ScriptedFrames frames_;
  std::unique_ptr<RuledFrames> ruled_;
};

TEST_F(RuledFramesTest, ASubsetFollowsItsRows) {
  open(std::vector{rule("note = 'test'")}, std::vector{rule("region = 'north'", true)});
  insert({"1", "north", "a"});
  insert({"2", "south", "a"});
  insert({"3", "north", "test"});
  update({"1", "north", "a"}, {"1", "north", "b"});
  update({"2", "south", "a"}, {"2", "north", "?"});
  update({"1", "north", "b"}, {"1", "south", "b"});
  update({"4", "south", "b"}, {"4", "east", "b"});
  remove({"2", "north", "a"});
  remove({"4", "east", "b"});
  put(lcr::FrameKind::insert, {}, {"9", "south", "test"}, 1, kPlain);
  EXPECT_EQ(taken(),
            (Words{"I 1,north,a", "U 1,north,b", "I 2,north,a", "D 1,north,b", "D 2,north,a", "I 9,south,test"}));
  EXPECT_EQ(counted(), (Counted{3, 4, 1, 1}));
}

TEST_F(RuledFramesTest, AFrameThatIsBrowsedAgainIsJudgedOnce) {
  open({}, std::vector{rule("region = 'north'", true)});
  frames_.frames.clear();
  describe(orders_, "orders", 1);
  update({"1", "south", "a"}, {"1", "north", "?"});
  ASSERT_NE(*ruled_->browse({}), nullptr);
  ruled_->dequeue();
  for (int i = 0; i < 3; ++i) {
    const auto browsed = ruled_->browse({});
    ASSERT_TRUE(browsed);
    EXPECT_EQ(word(lcr::FrameView::trusted(*browsed)), "I 1,north,a");
    ruled_->release();
    EXPECT_FALSE(frames_.held());
  }
  EXPECT_EQ(counted(), (Counted{0, 0, 1, 0}));
}

TEST_F(RuledFramesTest, WhatCannotBeDecidedStopsInFrontOfTheChange) {
  open({}, std::vector{rule("note = 'a'")});
  insert({"1", "north", "a"});
  put(lcr::FrameKind::update, {}, {"1", "north", "?"});
  insert({"2", "north", "a"});
  EXPECT_EQ(taken(), (Words{"I 1,north,a", "rule_undecidable"}));
  const auto again = ruled_->browse({});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::rule_undecidable);
  EXPECT_EQ(again.error().table, "\"ruled_frames\".\"orders\"");
  EXPECT_EQ(again.error().lsn, base::Lsn{0x90});
  EXPECT_EQ(again.error().xid, base::Xid{7});
}

TEST_F(RuledFramesTest, ATruncateLeavesOutTablesWhoseRulesDropIt) {
  open(std::vector{rule("", false, rules::kTruncate)}, {});
  const auto truncate = [&](std::vector<base::RelationId> relations) {
    frames_.frames.push_back(lcr::make_truncate_frame({7}, {8}, {0x90}, lcr::kStreamed, relations));
  };
  truncate({orders_, kPlain});
  truncate({orders_});
  truncate({kPlain});
  EXPECT_EQ(taken(), (Words{"T 1", "T 1"}));
}

// A backlog begins with descriptions, perhaps of versions that no change of it is of.
TEST_F(RuledFramesTest, RulesNeedToFitOnlyWhatChanges) {
  open({}, std::vector{rule("region = 'north'")});
  frames_.frames.clear();
  describe(orders_, "orders", 1, "area");
  describe(orders_, "orders", 2);
  put(lcr::FrameKind::insert, {}, {"1", "north", "a"}, 2);
  describe(orders_, "orders", 2);
  put(lcr::FrameKind::insert, {}, {"2", "south", "a"}, 2);
  describe(orders_, "orders", 3, "area");
  put(lcr::FrameKind::insert, {}, {"3", "north", "a"}, 3);
  EXPECT_EQ(taken(), (Words{"I 1,north,a", "rule_refused"}));
  EXPECT_FALSE(frames_.held()) << "the source was asked while a frame was looked at";
}

// The capture repeats it when the source does: something that only the catalogue tells may have changed.
TEST_F(RuledFramesTest, ARepeatedDescriptionIsANewLookAtTheCatalogue) {
  auto source = pg::Connection::open(conninfo_, {});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(source->script("ALTER TABLE ruled_frames.orders ALTER region TYPE text COLLATE \"C\""));
  open({}, std::vector{rule("region < 'm'")});
  insert({"1", "a", "a"});
  EXPECT_EQ(taken(), Words{"I 1,a,a"});
  ASSERT_TRUE(source->script("ALTER TABLE ruled_frames.orders ALTER region TYPE text COLLATE \"en-x-icu\""));
  describe(orders_, "orders", 1);
  insert({"2", "a", "a"});
  EXPECT_EQ(taken(), Words{"rule_refused"});
}

// Each whole transaction has its own tag, or none; a piece of one that is open has not got any yet.
TEST_F(RuledFramesTest, ATagIsOfTheTransactionThatHasBegun) {
  open(std::vector{rule("tag = 'archive'")}, std::nullopt);
  const auto transaction = [this](std::optional<std::string_view> origin) {
    const base::Xid xid{7};
    const lcr::TransactionMark mark{.commit_lsn = {0xA0}, .end_lsn = {0xB0}, .commit_time = {1}};
    frames_.frames.push_back(lcr::make_begin_frame(xid, mark));
    if (origin) frames_.frames.push_back(lcr::make_origin_frame(xid, mark.commit_lsn, *origin));
    const auto row = tuple({"1", "north", "a"});
    const lcr::RowFrame insert{.kind = lcr::FrameKind::insert,
                               .flags = 0,
                               .xid = xid,
                               .subxid = {},
                               .relation = orders_,
                               .table_version = 1,
                               .lsn = {0x90},
                               .old_tuple = {},
                               .new_tuple = row};
    frames_.frames.emplace_back(lcr::row_frame_bytes(insert));
    lcr::write_row_frame(insert, frames_.frames.back());
    frames_.frames.push_back(lcr::make_commit_frame(xid, false, mark));
  };
  for (const char* const origin : {"archive", "", "branch", "archive", ""}) transaction(origin);
  std::vector<lcr::FrameKind> kinds;
  while (!frames_.frames.empty()) {
    const auto frame = ruled_->browse({});
    ASSERT_TRUE(frame) << frame.error().message;
    if (*frame == nullptr) continue;
    kinds.push_back(lcr::kind_of(*frame));
    ruled_->dequeue();
  }
  EXPECT_EQ(std::ranges::count(kinds, lcr::FrameKind::insert), 3);
  EXPECT_EQ(std::ranges::count(kinds, lcr::FrameKind::commit), 5);
  EXPECT_EQ(counted(), (Counted{3, 2, 0, 0}));
  insert({"2", "north", "a"});
  EXPECT_EQ(taken(), (Words{"rule_undecidable"}));
  // Nor does one that was captured before anybody asked.
  frames_.frames.clear();
  transaction(std::nullopt);
  EXPECT_EQ(taken(), (Words{"rule_undecidable"}));
}

TEST_F(RuledFramesTest, AChangeOfAnUndescribedVersionIsNotJudged) {
  open({}, std::vector{rule("region = 'north'")});
  put(lcr::FrameKind::insert, {}, {"1", "north", "a"}, 2);
  EXPECT_EQ(taken(), (Words{"corrupt_frame"}));
  open({}, std::vector{rule("region = 'north'")});
  put(lcr::FrameKind::insert, {}, {"1", "north", "a"}, 1, base::RelationId{2});
  EXPECT_EQ(taken(), (Words{"corrupt_frame"}));
}

TEST_F(RuledFramesTest, ManyDroppedChangesLetTheAgentLookAtSomethingElse) {
  open({}, std::vector<Rule>{});
  for (size_t i = 0; i <= RuledFrames::kDroppedAtOnce; ++i) insert({"1", "north", "a"});
  EXPECT_EQ(taken(), Words{});
  EXPECT_EQ(frames_.frames.size(), 1U);
  EXPECT_EQ(taken(), Words{});
  EXPECT_TRUE(frames_.frames.empty());
}

}  // namespace
}  // namespace thalweg::daemon
