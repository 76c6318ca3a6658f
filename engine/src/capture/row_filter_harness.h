#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_bytes.h"
#include "capture/row_filter.h"
#include "support/test_cluster.h"

// A translator with filters: the tables are a server's, the messages about them are made here.

namespace thalweg::capture {

using rules::Rule;

inline const std::string kNull(1, '\0');

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
              .plain_tables = {{"ruled", "plain"}},
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
    return translator_->translate(**parsed, parser_, lsn_);
  }
  // A description of table orders with text columns, of which the first is the key.
  PgoutputBytes orders_as(const std::vector<std::string>& columns, uint32_t xid = 0) {
    PgoutputBytes bytes('R');
    if (xid != 0) bytes.u32(xid);
    bytes.u32(oid("orders")).text("ruled").text("orders").raw("d").u16(static_cast<uint16_t>(columns.size()));
    for (const std::string& column : columns) {
      const bool is_key = column == columns.front();
      bytes.u8(is_key ? 1 : 0).text(column).u32(is_key ? 23 : 25).u32(0xFFFFFFFF);
    }
    return bytes;
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
  // Counts of table orders: passed, dropped, became inserts, became deletes.
  std::array<uint64_t, 4> counted() const {
    const auto tables = filters_->sample();
    EXPECT_EQ(tables.size(), 1U);
    const telemetry::RuleSample& sample = tables.at(0);
    EXPECT_EQ(sample.schema_name + "." + sample.table_name, "ruled.orders");
    return {sample.passed, sample.dropped, sample.became_inserts, sample.became_deletes};
  }
  using Counted = std::array<uint64_t, 4>;
  uint64_t decided_by_policy() const { return filters_->sample().at(0).by_policy; }

  // Of the messages that follow: where the source's WAL ends.
  base::Lsn go_on() {
    const auto rows = source_->query("SELECT pg_logical_emit_message(false, 'here', '')", {});
    EXPECT_TRUE(rows) << rows.error().message;
    return lsn_ = base::parse_lsn(rows->text(0, 0)).value_or(base::Lsn{});
  }

  std::string conninfo_;
  base::Lsn lsn_{0x90};
  std::optional<pg::Connection> source_;
  base::SystemClock clock_;
  StreamRules rules_;
  WordSink sink_;
  PgoutputParser parser_;
  std::unique_ptr<RowFilters> filters_;
  std::unique_ptr<FrameTranslator> translator_;
};

}  // namespace thalweg::capture
