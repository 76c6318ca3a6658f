#include "apply/applier/row_turn.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "apply/row_key.h"

namespace thalweg::apply {
namespace {

using lcr::FrameKind;
using Cells = std::vector<std::string>;  // "u": UNCHANGED

// (a, b, c), found by its unique index over (b, a).
metadata::TableMetadata make_table() {
  metadata::TableMetadata table;
  table.columns.resize(3);
  for (auto& column : table.columns) column.key_form = metadata::KeyForm::bytes;
  table.identity = {0, 1};
  table.identity_index = 8;
  table.unique_keys.push_back({.index = 8, .columns = {1, 0}});
  return table;
}

std::vector<std::byte> tuple(const Cells& cells) {
  std::vector<std::byte> out{std::byte{0}, static_cast<std::byte>(cells.size())};
  for (const auto& cell : cells) {
    out.push_back(static_cast<std::byte>(cell == "u" ? 'u' : 'b'));
    if (cell == "u") continue;
    out.insert(out.end(), {std::byte{0}, std::byte{0}, std::byte{0}, static_cast<std::byte>(cell.size())});
    for (const char c : cell) out.push_back(static_cast<std::byte>(c));
  }
  return out;
}

uint64_t hash_of(const metadata::TableMetadata& table, const Cells& cells) {
  const auto bytes = tuple(cells);
  std::vector<lcr::Value> values;
  lcr::TupleView(bytes).read(values);
  return *hash_key(8, table, table.unique_keys.front().columns, values, false);
}

class RowTurnsTest : public testing::Test {
 protected:
  Turn turn(FrameKind kind, const std::optional<Cells>& old, const std::optional<Cells>& now) {
    const auto old_tuple = old ? tuple(*old) : std::vector<std::byte>{};
    const auto new_tuple = now ? tuple(*now) : std::vector<std::byte>{};
    const lcr::RowFrame row{.kind = kind,
                            .flags = static_cast<uint16_t>(old ? lcr::kOldRow : 0),
                            .xid = {1},
                            .subxid = {},
                            .relation = {1},
                            .table_version = 1,
                            .lsn = {1},
                            .old_tuple = old_tuple,
                            .new_tuple = new_tuple};
    std::vector<std::byte> bytes(lcr::row_frame_bytes(row));
    lcr::write_row_frame(row, bytes);
    return turns.of(transaction, table, lcr::FrameView::trusted(bytes.data()));
  }
  uint64_t hash(const std::string& a, const std::string& b) { return hash_of(table, {a, b, ""}); }

  metadata::TableMetadata table = make_table();
  Transaction transaction;
  RowTurns turns;
};

TEST_F(RowTurnsTest, AContestedKeyWaitsInEachKindOfChange) {
  transaction.writes = {hash("1", "1"), hash("1", "2"), hash("2", "1"), hash("2", "1"), hash("1", "1"), hash("3", "3")};
  turns.begin(std::vector{hash("1", "1"), hash("2", "1")});
  EXPECT_EQ(turn(FrameKind::insert, {}, Cells{"1", "1", "x"}), Turn::later);
  EXPECT_EQ(turn(FrameKind::update, {}, Cells{"1", "2", "x"}), Turn::now);
  EXPECT_EQ(turn(FrameKind::update, Cells{"2", "1", "x"}, Cells{"2", "u", "y"}), Turn::later);  // hashed twice
  EXPECT_EQ(turn(FrameKind::remove, Cells{"1", "1", "x"}, {}), Turn::later);
  EXPECT_EQ(turn(FrameKind::remove, Cells{"3", "3", "x"}, {}), Turn::now);
  // Another group.
  Transaction other;
  other.writes = {hash("1", "1")};
  std::swap(transaction.writes, other.writes);
  turns.begin({});
  EXPECT_EQ(turn(FrameKind::insert, {}, Cells{"1", "1", "x"}), Turn::now);
}

TEST_F(RowTurnsTest, AKeyThatChangesWaitsForAll) {
  transaction.writes = {hash("1", "1"), hash("1", "2"), hash("7", "7")};
  turns.begin(std::vector{hash("7", "7")});
  EXPECT_EQ(turn(FrameKind::update, Cells{"1", "1", "x"}, Cells{"1", "2", "x"}), Turn::after);
  // Unless its transaction shares nothing at all.
  turns.begin(std::vector{hash("8", "8")});
  EXPECT_EQ(turn(FrameKind::update, Cells{"1", "1", "x"}, Cells{"1", "2", "x"}), Turn::now);
}

// The table had another index when its rows were hashed.
TEST_F(RowTurnsTest, ARowThatWasNotHashedLikeThisWaitsForAll) {
  transaction.writes = {1, 2, 3};
  turns.begin(std::vector<uint64_t>{3});
  EXPECT_EQ(turn(FrameKind::insert, {}, Cells{"1", "1", "x"}), Turn::after);
}

TEST_F(RowTurnsTest, TablesInWhichRowsMeetOtherwiseWaitForAll) {
  transaction.writes = {hash("1", "1")};
  const auto of_table = [&](auto change) {
    table = make_table();
    change(table);
    turns.begin({});
    return turn(FrameKind::insert, {}, Cells{"1", "1", "x"});
  };
  EXPECT_EQ(of_table([](auto&) {}), Turn::now);
  EXPECT_EQ(of_table([](auto& t) { t.has_triggers = true; }), Turn::after);
  EXPECT_EQ(of_table([](auto& t) { t.is_partitioned = true; }), Turn::after);
  EXPECT_EQ(of_table([](auto& t) { t.unique_keys.push_back({.index = 9, .columns = {2}}); }), Turn::after);
  EXPECT_EQ(of_table([](auto& t) { t.unique_keys.front().is_exact = false; }), Turn::after);
  EXPECT_EQ(of_table([](auto& t) { t.identity_index = 0; }), Turn::after);
}

TEST_F(RowTurnsTest, WithoutAKeyOnlyInsertsGo) {
  table.identity.clear();
  table.identity_index = 0;
  table.unique_keys.clear();
  turns.begin({});
  EXPECT_EQ(turn(FrameKind::insert, {}, Cells{"1", "1", "x"}), Turn::now);
  EXPECT_EQ(turn(FrameKind::remove, Cells{"1", "1", "x"}, {}), Turn::after);
  EXPECT_EQ(turn(FrameKind::update, Cells{"1", "1", "x"}, Cells{"1", "1", "y"}), Turn::after);
}

}  // namespace
}  // namespace thalweg::apply
