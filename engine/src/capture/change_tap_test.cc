#include "capture/change_tap.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

namespace thalweg::capture {
namespace {

using namespace std::chrono_literals;

const TableKey kOrders{"public", "orders"};
constexpr auto kLong = 20s;

lcr::TableDescription orders(uint32_t version = 1) {
  return {.relation = {7},
          .version = version,
          .schema_name = "public",
          .table_name = "orders",
          .replica_identity = 'd',
          .columns = {{.name = "id", .type = {25}, .type_modifier = -1, .is_key = true},
                      {.name = "card", .type = {25}, .type_modifier = -1, .is_key = false},
                      {.name = "note", .type = {25}, .type_modifier = -1, .is_key = false}}};
}

// A capture that writes into a tap.
class ChangeTapTest : public testing::Test {
 protected:
  bool write(const std::string& id, base::Xid xid = {1}, base::Xid subxid = {}, uint16_t flags = 0,
             const lcr::TableDescription& table = orders()) {
    const auto bytes = std::as_bytes(std::span(id));
    const std::array<lcr::Value, 3> values{
        {{.mark = lcr::ValueMark::text, .bytes = bytes}, {}, {.mark = lcr::ValueMark::unchanged, .bytes = {}}}};
    const auto tuple = lcr::make_tuple(values);
    return tap_.note({.kind = lcr::FrameKind::insert,
                      .flags = flags,
                      .xid = xid,
                      .subxid = subxid,
                      .relation = table.relation,
                      .table_version = table.version,
                      .lsn = {1},
                      .old_tuple = {},
                      .new_tuple = tuple},
                     table, transformation_);
  }
  bool write_streamed(const std::string& id, base::Xid xid, base::Xid subxid = {}) {
    return write(id, xid, subxid, lcr::kStreamed);
  }
  void await_request() const {
    while (!tap_.is_wanted()) std::this_thread::yield();
  }
  // take() waits while the capture does this.
  template <typename Writes>
  TappedChanges while_taking(size_t limit, std::chrono::milliseconds patience, Writes writes) {
    TappedChanges taken;
    std::thread reader([&] { taken = tap_.take(kOrders, limit, patience); });
    await_request();
    writes();
    reader.join();
    return taken;
  }

  ChangeTap tap_;
  const transform::RowTransformation* transformation_ = nullptr;
};

std::string ids(const TappedChanges& taken) {
  std::string all;
  for (const TappedChange& change : taken.changes) {
    std::vector<lcr::Value> values;
    lcr::FrameView::trusted(change.frame.data()).new_tuple().read(values);
    all.append(reinterpret_cast<const char*>(values[0].bytes.data()), values[0].bytes.size());
  }
  return all;
}

TEST_F(ChangeTapTest, GivesTheNextChangesOfOneTable) {
  EXPECT_FALSE(tap_.is_wanted());
  EXPECT_FALSE(write("a"));
  const auto taken = while_taking(2, kLong, [&] {
    auto other = orders();
    other.schema_name = "sales";
    EXPECT_TRUE(write("b", {1}, {}, 0, other));
    EXPECT_TRUE(write("c"));
    EXPECT_FALSE(write("d"));
    EXPECT_FALSE(write("e"));
  });
  EXPECT_EQ(ids(taken), "cd");
  EXPECT_EQ(taken.end, TapEnd::limit);
  EXPECT_EQ(taken.changes[0].table, taken.changes[1].table);
  EXPECT_EQ(taken.changes[0].table->description.columns[2].name, "note");
  EXPECT_FALSE(tap_.is_wanted());
}

TEST_F(ChangeTapTest, GivesWhatCameInTime) {
  const auto taken = while_taking(2, 300ms, [&] { EXPECT_TRUE(write("a")); });
  EXPECT_EQ(ids(taken), "a");
  EXPECT_EQ(taken.end, TapEnd::time);
  EXPECT_TRUE(tap_.take(kOrders, 2, 1ms).changes.empty());
  EXPECT_FALSE(tap_.is_wanted());
}

TEST_F(ChangeTapTest, StreamedChangesCountOnceTheyHaveCommitted) {
  const auto taken = while_taking(4, kLong, [&] {
    EXPECT_TRUE(write_streamed("a", {1}));
    EXPECT_TRUE(write_streamed("b", {2}));
    EXPECT_TRUE(write_streamed("c", {2}, {3}));
    EXPECT_TRUE(write_streamed("d", {2}, {4}));
    EXPECT_TRUE(write_streamed("rolled back", {5}));
    EXPECT_TRUE(write("e", {6}));
    tap_.aborted({5}, {});
    tap_.aborted({2}, {3});
    tap_.committed({2});
    EXPECT_TRUE(tap_.is_wanted());
    EXPECT_FALSE(write("f", {7}));
    tap_.committed({1});
  });
  EXPECT_EQ(ids(taken), "ebdf");
}

TEST_F(ChangeTapTest, OpenTransactionsAreLeftOutAndBounded) {
  const auto taken = while_taking(2, 300ms, [&] {
    EXPECT_TRUE(write_streamed("a", {1}));
    EXPECT_TRUE(write_streamed("b", {1}));
    EXPECT_TRUE(write_streamed("c", {2}));  // too many are open
    tap_.aborted({1}, {});
    tap_.committed({2});
    EXPECT_TRUE(write_streamed("d", {3}));
  });
  EXPECT_EQ(ids(taken), "");
  EXPECT_EQ(taken.end, TapEnd::time);
}

TEST_F(ChangeTapTest, AnotherSessionSendsOpenTransactionsAgain) {
  const auto taken = while_taking(2, kLong, [&] {
    EXPECT_TRUE(write_streamed("a", {1}));
    tap_.restarted();
    EXPECT_TRUE(write_streamed("a", {1}));
    EXPECT_TRUE(write_streamed("b", {1}));
    tap_.committed({1});
  });
  EXPECT_EQ(ids(taken), "ab");
}

TEST_F(ChangeTapTest, LargeChangesEndIt) {
  const auto taken = while_taking(100, kLong, [&] {
    EXPECT_TRUE(write("a"));
    EXPECT_FALSE(write(std::string(ChangeTap::kBytesMax, 'b')));
  });
  EXPECT_EQ(ids(taken), "a");
  EXPECT_EQ(taken.end, TapEnd::size);
}

TEST_F(ChangeTapTest, ClosingEndsEveryWait) {
  const auto taken = while_taking(1, kLong, [&] { tap_.close(); });
  EXPECT_EQ(taken.end, TapEnd::closed);
  EXPECT_EQ(tap_.take(kOrders, 1, kLong).end, TapEnd::closed);
}

TEST_F(ChangeTapTest, SaysWhatTheStreamHides) {
  const auto made = transform::RowTransformation::make(
      {{.kind = transform::StepKind::rename_column, .column = "card", .to = "number", .mask = {}},
       {.kind = transform::StepKind::mask_column, .column = "number", .to = {}, .mask = {}},
       {.kind = transform::StepKind::drop_column, .column = "note", .to = {}, .mask = {}},
       {.kind = transform::StepKind::add_column, .column = "made", .to = {}, .mask = {}, .type = "text", .value = "x"}},
      orders());
  ASSERT_TRUE(made) << made.error().message;
  transformation_ = &*made;
  const auto taken = while_taking(1, kLong, [&] { EXPECT_FALSE(write("a")); });
  EXPECT_EQ(taken.changes.at(0).table->is_hidden, (std::vector{false, true, true}));
}

// A capture that looks once for each transaction, as the translator does, and threads that come and go.
TEST_F(ChangeTapTest, SeveralTakeWhileACaptureWrites) {
  std::atomic<bool> ends{false};
  std::thread capture([&] {
    for (uint32_t xid = 1; !ends; ++xid) {
      bool is_tapped = tap_.is_wanted();
      for (int row = 0; is_tapped && row < 3; ++row) is_tapped = write_streamed("a", {xid});
      if (is_tapped) xid % 3 == 0 ? tap_.aborted({xid}, {}) : tap_.committed({xid});
    }
  });
  std::vector<std::thread> readers;
  for (size_t limit = 1; limit <= 4; ++limit) {
    readers.emplace_back([this, limit] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(tap_.take(kOrders, limit, kLong).changes.size(), limit);
    });
  }
  for (std::thread& reader : readers) reader.join();
  ends = true;
  capture.join();
}

}  // namespace
}  // namespace thalweg::capture
