#include "apply/applier/update_merger.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "lcr/bytes.h"

// Random histories of few rows: what comes out, executed in its order, gives what the rows give in theirs.

namespace thalweg::apply {
namespace {

using lcr::FrameKind;

constexpr int kUnchanged = -1;
using Cells = std::array<int, 3>;  // key, two values
using Model = std::map<int, std::array<int, 2>>;

metadata::TableMetadata make_table(uint32_t version = 1) {
  metadata::TableMetadata table;
  table.source.version = version;
  table.destination = {7};
  table.columns.resize(3);
  table.identity = {0};
  table.identity_index = 8;
  table.unique_keys.push_back({.index = 8, .columns = {0}});
  table.table_hash = 99;
  return table;
}

std::vector<std::byte> tuple(const Cells& cells) {
  std::vector<std::byte> out{std::byte{0}, std::byte{3}};
  for (const int cell : cells) {
    out.push_back(static_cast<std::byte>(cell == kUnchanged ? 'u' : 'b'));
    if (cell == kUnchanged) continue;
    for (const int value : {4, cell}) {
      for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::byte>(value >> shift & 0xFF));
    }
  }
  return out;
}

Cells cells_of(lcr::TupleView view) {
  std::vector<lcr::Value> values;
  view.read(values);
  Cells cells{};
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] =
        values[i].mark == lcr::ValueMark::unchanged ? kUnchanged : lcr::load_network<int>(values[i].bytes.data());
  }
  return cells;
}

// As a destination would; every change must find what it is about.
void execute(Model& model, const lcr::FrameView& frame) {
  const auto now = frame.kind() == FrameKind::remove ? Cells{} : cells_of(frame.new_tuple());
  const int key = frame.old_tuple().exists() ? cells_of(frame.old_tuple())[0] : now[0];
  if (frame.kind() == FrameKind::insert) {
    ASSERT_TRUE(model.emplace(key, std::array{now[1], now[2]}).second) << "row " << key << " is there";
    return;
  }
  const auto row = model.extract(key);
  ASSERT_FALSE(row.empty()) << "row " << key << " is not there";
  if (frame.kind() == FrameKind::remove) return;
  const auto& before = row.mapped();
  const std::array after{now[1] == kUnchanged ? before[0] : now[1], now[2] == kUnchanged ? before[1] : now[2]};
  ASSERT_TRUE(model.emplace(now[0], after).second) << "row " << now[0] << " is there";
}

class Merging {
 public:
  void give(const metadata::TableMetadata& table, FrameKind kind, const std::optional<Cells>& old, const Cells& now) {
    const auto old_tuple = old ? tuple(*old) : std::vector<std::byte>{};
    const auto new_tuple = kind == FrameKind::remove ? std::vector<std::byte>{} : tuple(now);
    const lcr::RowFrame row{.kind = kind,
                            .flags = static_cast<uint16_t>(old ? lcr::kOldKey : 0),
                            .xid = {1},
                            .subxid = {},
                            .relation = {1},
                            .table_version = table.source.version,
                            .lsn = {1},
                            .old_tuple = old_tuple,
                            .new_tuple = new_tuple};
    lcr::write_row_frame(row, frames_.emplace_back(lcr::row_frame_bytes(row)));
    const auto frame = lcr::FrameView::trusted(frames_.back().data());
    ++given;
    execute(in_order, frame);
    execute_all(merger.take(table, frame));
  }
  void release() { execute_all(merger.release()); }

  telemetry::Counter merged;
  UpdateMerger merger{merged};
  Model in_order, made;
  uint64_t given = 0, sent = 0;

 private:
  void execute_all(std::span<const PendingFrame> pending) {
    for (const auto& entry : pending) execute(made, entry.frame);
    sent += pending.size();
  }
  std::deque<std::vector<std::byte>> frames_;
};

// `full`: old rows come with every update, as under REPLICA IDENTITY FULL.
void step(Merging& merging, const metadata::TableMetadata& table, std::mt19937& random, int keys, bool full) {
  const auto any = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const int key = any(keys);
  const auto row = merging.in_order.find(key);
  if (row == merging.in_order.end()) return merging.give(table, FrameKind::insert, {}, {key, any(1000), any(1000)});
  const Cells old{key, row->second[0], row->second[1]};
  const int other = any(keys);
  const int what = any(12);
  if (what == 0) return merging.give(table, FrameKind::remove, old, {});
  if (what == 1 && !merging.in_order.contains(other)) {
    return merging.give(table, FrameKind::update, old, {other, any(1000), any(2) == 0 ? kUnchanged : any(1000)});
  }
  merging.give(table, FrameKind::update, full ? std::optional(old) : std::nullopt,
               {key, any(1000), any(3) == 0 ? kUnchanged : any(1000)});
}

TEST(UpdateMerger, GivesWhatTheRowsGiveInTheirOrder) {
  const auto table = make_table();
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Merging merging;
    for (int i = 0; i < 400; ++i) {
      step(merging, table, random, 6, seed % 2 == 0);
      if (random() % 150 == 0) merging.release();
    }
    merging.release();
    ASSERT_EQ(merging.made, merging.in_order) << "seed " << seed;
    ASSERT_EQ(merging.sent + merging.merged.get(), merging.given) << "seed " << seed;
    ASSERT_GT(merging.merged.get(), 50U) << "seed " << seed;
  }
}

TEST(UpdateMerger, SendsAHeldUpdateWhoseSuccessorLacksAColumn) {
  const auto table = make_table();
  Merging merging;
  merging.give(table, FrameKind::insert, {}, {1, 10, 20});
  merging.give(table, FrameKind::update, {}, {1, 11, kUnchanged});
  merging.give(table, FrameKind::update, {}, {1, 12, 22});
  merging.give(table, FrameKind::update, {}, {1, 13, kUnchanged});  // 22 is in the one before only
  merging.give(table, FrameKind::update, {}, {1, 14, kUnchanged});
  merging.release();
  EXPECT_EQ(merging.made, (Model{{1, {14, 22}}}));
  EXPECT_EQ(merging.merged.get(), 1U);
}

TEST(UpdateMerger, LeavesATableAloneWhoseRowsHardlyRepeat) {
  const auto table = make_table();
  Merging merging;
  for (int i = 0; i < 10'000; ++i) merging.give(table, FrameKind::insert, {}, {i, 0, 0});
  for (int i = 1; i <= 3; ++i) merging.give(table, FrameKind::update, {}, {0, i, i});
  EXPECT_TRUE(merging.merger.holds(table));
  for (int i = 1; i < 10'000; ++i) merging.give(table, FrameKind::update, {}, {i, i, i});
  for (int i = 0; i < 100; ++i) merging.give(table, FrameKind::update, {}, {7, i, i});
  EXPECT_FALSE(merging.merger.holds(table));
  EXPECT_EQ(merging.merged.get(), 1U);
  EXPECT_EQ(merging.made, merging.in_order);
  // Another group, another trial.
  merging.release();
  for (int i = 0; i < 100; ++i) merging.give(table, FrameKind::update, {}, {7, i, i});
  EXPECT_EQ(merging.merged.get(), 99U);
}

TEST(UpdateMerger, KeepsEveryRowWhereOthersWouldTell) {
  auto with_triggers = make_table();
  with_triggers.has_triggers = true;
  auto with_second_key = make_table();
  with_second_key.unique_keys.push_back({.index = 9, .columns = {1}});
  auto without_index = make_table();
  without_index.identity_index = 0;
  for (const auto* table : {&with_triggers, &with_second_key, &without_index}) {
    Merging merging;
    merging.give(*table, FrameKind::insert, {}, {1, 0, 0});
    for (int i = 1; i < 100; ++i) merging.give(*table, FrameKind::update, {}, {1, i, i});
    EXPECT_EQ(merging.sent, merging.given);
    EXPECT_EQ(merging.made, merging.in_order);
  }
}

// A trigger must see the rows as they were at the source.
TEST(UpdateMerger, SendsEverythingBeforeARowThatFiresTriggers) {
  const auto table = make_table();
  auto watching = make_table();
  watching.destination = {70};
  watching.has_triggers = true;
  std::mt19937 random(3);
  Merging merging;
  for (int i = 0; i < 300; ++i) {
    step(merging, table, random, 5, false);
    if (i % 10 != 0) continue;
    merging.give(watching, FrameKind::insert, {}, {1000 + i, 0, 0});
    ASSERT_EQ(merging.made, merging.in_order);
  }
  EXPECT_GT(merging.merged.get(), 0U);
}

TEST(UpdateMerger, DoesNotMergeAcrossVersionsOfATable) {
  const auto first = make_table(1);
  const auto second = make_table(2);
  Merging merging;
  merging.give(first, FrameKind::insert, {}, {1, 0, 0});
  for (int i = 1; i < 5; ++i) merging.give(first, FrameKind::update, {}, {1, i, i});
  EXPECT_TRUE(merging.merger.holds(second));
  for (int i = 5; i < 9; ++i) merging.give(i % 2 == 0 ? first : second, FrameKind::update, {}, {1, i, i});
  EXPECT_FALSE(merging.merger.holds(first));
  EXPECT_EQ(merging.made, merging.in_order);
}

}  // namespace
}  // namespace thalweg::apply
