#include "apply/applier/compactor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "apply/applier/arena.h"

// Random histories of few rows: what is left after merging, applied to a table, gives what the rows give in order.

namespace thalweg::apply {
namespace {

constexpr size_t kColumns = 3;  // key, two values
using ModelRow = std::array<int, 2>;
using Model = std::map<int, ModelRow>;

metadata::TableMetadata make_table() {
  metadata::TableMetadata table;
  table.columns.resize(kColumns);
  table.identity = {0};
  table.table_hash = 99;
  return table;
}

class History {
 public:
  History(const metadata::TableMetadata& table, unsigned seed) : compactor(table), random(seed) {}

  Values values(int key, int a, int b) {
    Values made = arena.take_array<lcr::Value>(kColumns);
    const int numbers[kColumns] = {key, a, b};
    for (size_t i = 0; i < kColumns; ++i) {
      auto* bytes = arena.take(sizeof(int));
      std::memcpy(bytes, &numbers[i], sizeof(int));
      // -1: did not come.
      made[i] = numbers[i] == -1 ? lcr::Value{.mark = lcr::ValueMark::unchanged, .bytes = {}}
                                 : lcr::Value{.mark = lcr::ValueMark::binary, .bytes = {bytes, sizeof(int)}};
    }
    return made;
  }

  void step(Model& model) {
    const int key = static_cast<int>(random() % 6);
    const int a = static_cast<int>(random() % 1000);
    const int b = static_cast<int>(random() % 1000);
    if (!model.contains(key)) {
      model[key] = {a, b};
      ASSERT_TRUE(compactor.insert(values(key, a, b), nullptr));
    } else if (random() % 3 == 0) {
      model.erase(key);
      ASSERT_TRUE(compactor.remove(values(key, 0, 0), nullptr, nullptr));
    } else {
      const bool keeps_b = random() % 2 == 0;
      model[key] = {a, keeps_b ? model[key][1] : b};
      ASSERT_TRUE(compactor.update(values(key, a, keeps_b ? -1 : b), nullptr, nullptr));
    }
  }

  Compactor compactor;
  Arena arena;
  std::mt19937 random;
};

int number(const lcr::Value& value) {
  int out = 0;
  std::memcpy(&out, value.bytes.data(), sizeof(out));
  return out;
}

void apply_sets(const Compactor& compactor, Model& model) {
  for (const RowChange& change : compactor.changes()) {
    if (change.state != RowState::remove && change.state != RowState::remove_insert) continue;
    ASSERT_EQ(model.erase(number(change.values[0])), 1U);
  }
  for (const RowChange& change : compactor.changes()) {
    if (change.state != RowState::update) continue;
    const auto found = model.find(number(change.values[0]));
    ASSERT_NE(found, model.end());
    for (size_t column = 1; column < kColumns; ++column) {
      if (change.values[column].mark != lcr::ValueMark::unchanged)
        found->second[column - 1] = number(change.values[column]);
    }
  }
  for (const RowChange& change : compactor.changes()) {
    if (change.state != RowState::insert && change.state != RowState::remove_insert) continue;
    ASSERT_FALSE(change.has_unchanged);
    ASSERT_TRUE(
        model.emplace(number(change.values[0]), ModelRow{number(change.values[1]), number(change.values[2])}).second);
  }
}

TEST(Compactor, GivesWhatRowOrderGives) {
  const auto table = make_table();
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    History history(table, seed);
    Model rows;
    for (int key = 0; key < 3; ++key) rows[key] = {key, key};
    Model sets = rows;
    const int steps = 1 + static_cast<int>(history.random() % 40);
    for (int i = 0; i < steps; ++i) history.step(rows);
    apply_sets(history.compactor, sets);
    ASSERT_EQ(sets, rows);
    EXPECT_LE(history.compactor.size(), 6U);
  }
}

TEST(Compactor, RefusesWhatDoesNotFollow) {
  const auto table = make_table();
  History h(table, 1);
  ASSERT_TRUE(h.compactor.insert(h.values(1, 1, 1), nullptr));
  EXPECT_FALSE(h.compactor.insert(h.values(1, 2, 2), nullptr));
  ASSERT_TRUE(h.compactor.remove(h.values(1, 0, 0), nullptr, nullptr));
  EXPECT_FALSE(h.compactor.update(h.values(1, 3, 3), nullptr, nullptr));
  EXPECT_FALSE(h.compactor.remove(h.values(1, 0, 0), nullptr, nullptr));
  ASSERT_TRUE(h.compactor.update(h.values(2, 1, -1), nullptr, nullptr));
  EXPECT_FALSE(h.compactor.insert(h.values(2, 1, 1), nullptr));
}

TEST(Compactor, HoldsManyRowsAndForgetsThem) {
  const auto table = make_table();
  History h(table, 1);
  for (int round = 0; round < 3; ++round) {
    for (int key = 0; key < 10'000; ++key) ASSERT_TRUE(h.compactor.insert(h.values(key, 1, 1), nullptr));
    for (int key = 0; key < 10'000; ++key) ASSERT_TRUE(h.compactor.update(h.values(key, 2, -1), nullptr, nullptr));
    EXPECT_EQ(h.compactor.size(), 10'000U);
    h.compactor.clear();
  }
}

}  // namespace
}  // namespace thalweg::apply
