#include "daemon/effect.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

namespace thalweg::daemon {
namespace {

namespace fs = std::filesystem;

class EffectTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thalweg-effect-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    file_ = fs::path(name) / "in-effect.json";
  }
  void TearDown() override { fs::remove_all(file_.parent_path()); }

  // Zero: nothing is known.
  static uint64_t from(const Effect& effect, uint64_t judging) {
    const auto known = effect.of(judging);
    return known ? known->from.value : 0;
  }

  fs::path file_;
};

TEST_F(EffectTest, KeepsTheFirstPositionOfADefinition) {
  Effect effect(file_);
  EXPECT_EQ(from(effect, 7), 0u);
  effect.begin(7, {.from = {100}, .since = {1}});
  effect.begin(7, {.from = {200}, .since = {2}});
  effect.expect(7);
  EXPECT_EQ(from(effect, 7), 100u);
  EXPECT_EQ(from(effect, 8), 0u);
  Effect again(file_);
  EXPECT_EQ(from(again, 7), 100u);
  EXPECT_EQ(again.of(7)->since.value, 1);
  again.begin(7, {.from = {300}, .since = {3}});
  EXPECT_EQ(from(again, 7), 100u);
}

TEST_F(EffectTest, ForgetsADefinitionThatAnotherOneHasInterrupted) {
  Effect effect(file_);
  effect.begin(7, {.from = {100}, .since = {1}});
  effect.expect(8);
  EXPECT_EQ(from(effect, 7), 0u);
  EXPECT_EQ(from(Effect(file_), 7), 0u) << "also after a restart";
  effect.begin(7, {.from = {200}, .since = {2}});
  EXPECT_EQ(from(effect, 7), 200u);
}

std::vector<uint64_t> positions(const Effect& effect) {
  std::vector<uint64_t> from;
  for (const EffectBegin& at : effect.positions()) from.push_back(at.from.value);
  return from;
}

TEST_F(EffectTest, ADefinitionThatJudgedForADestinationThatIsBehindWasInEffect) {
  Effect effect(file_);
  effect.begin(7, {.from = {100}, .since = {1}});
  effect.expect(8);
  effect.await(8, {.from = {200}, .since = {2}});
  effect.await(8, {.from = {250}, .since = {3}});  // another session of it
  EXPECT_EQ(from(effect, 8), 0u) << "the destination is behind";
  EXPECT_EQ(positions(effect), (std::vector<uint64_t>{100}));
  Effect again(file_);  // after a restart
  again.expect(7);
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100})) << "nobody knows yet what the destination has";
  again.reached({150});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100, 200}));
  again.await(7, {.from = {300}, .since = {4}});
  again.begin(7, {.from = {310}, .since = {5}});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100, 200, 310}));
  EXPECT_EQ(again.positions()[1].since.value, 2);
  EXPECT_EQ(positions(Effect(file_)), (std::vector<uint64_t>{100, 200, 310}));
}

// An earlier session's frames that were not durable come again, and are judged by the present definition; those that
// the destination has already applied were judged by the earlier one.
TEST_F(EffectTest, WhatADestinationHadAppliedBeforeItWasAwayWasJudgedBefore) {
  Effect effect(file_);
  effect.begin(7, {.from = {100}, .since = {1}});
  effect.expect(8);
  effect.await(8, {.from = {100}, .since = {2}});
  effect.expect(9);
  effect.await(9, {.from = {300}, .since = {3}});
  Effect again(file_);  // after a restart
  again.reached({180});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100, 180}));
  again.reached({350});  // it was away once more: by then it has what the definitions that were awaited have judged
  again.expect(10);
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100, 180, 300}));
  again.begin(10, {.from = {400}, .since = {4}});
  EXPECT_EQ(positions(again), (std::vector<uint64_t>{100, 180, 300, 400}));
}

TEST_F(EffectTest, OfDefinitionsThatBeganWhereTheDestinationIsTheLastOneHasJudged) {
  Effect effect(file_);
  effect.begin(7, {.from = {100}, .since = {1}});
  for (uint64_t judging : {8, 9}) {
    effect.expect(judging);
    effect.await(judging, {.from = {100 + judging}, .since = {2}});
  }
  effect.expect(10);
  effect.reached({500});
  EXPECT_EQ(positions(effect), (std::vector<uint64_t>{100, 500}));
}

TEST_F(EffectTest, ReadsTheFileOfAnEarlierRelease) {
  std::ofstream(file_) << R"({"judging": 8, "awaited": {"from": 200, "since": 2},
                              "positions": [{"from": 100, "since": 1}]})";
  Effect effect(file_);
  effect.reached({150});
  effect.expect(9);
  EXPECT_EQ(positions(effect), (std::vector<uint64_t>{100, 200}));
}

TEST_F(EffectTest, ADefinitionThatHasJudgedNothingWasNotInEffect) {
  Effect effect(file_);
  effect.begin(7, {.from = {100}, .since = {1}});
  effect.expect(8);
  effect.await(8, {.from = {200}, .since = {2}});
  effect.expect(9);
  effect.await(9, {.from = {200}, .since = {3}});
  effect.begin(9, {.from = {200}, .since = {4}});
  EXPECT_EQ(positions(effect), (std::vector<uint64_t>{100, 200}));
  for (uint64_t i = 0; i < 20; ++i) effect.begin(10 + i, {.from = {300 + i}, .since = {5}});
  EXPECT_EQ(positions(effect).size(), Effect::kPositionsMax);
  EXPECT_EQ(positions(effect).back(), 319u);
}

TEST_F(EffectTest, AFileThatIsDamagedSaysNothing) {
  std::ofstream(file_) << R"({"judging": 7, "from": )";
  EXPECT_EQ(from(Effect(file_), 7), 0u);
  std::ofstream(file_) << R"({"judging": 7, "from": "low", "since": 1})";
  EXPECT_EQ(from(Effect(file_), 7), 0u);
}

TEST(Judging, ChangesWithWhatDecidesAndWithNothingElse) {
  control::StreamDefinition stream;
  stream.id = "effecttest";
  stream.tables = {{"public", "t"}};
  control::DestinationDefinition destination;
  destination.id = "warehouse";
  const control::Delivery before{.stream = stream, .destination = destination};
  const auto differs = [&](const std::function<void(control::Delivery&)>& change) {
    control::Delivery changed = before;
    change(changed);
    return judging(changed) != judging(before);
  };
  using control::Delivery;
  const control::RulesDefinition rules{.positive = {{{.name = "r", .operations = {}, .condition = "n > 1"}}},
                                       .negative = {}};
  EXPECT_TRUE(differs([&](Delivery& to) { to.stream.rules[{"public", "t"}] = rules; }));
  EXPECT_TRUE(differs([&](Delivery& to) { to.destination.rules[{"public", "t"}] = rules; }));
  EXPECT_TRUE(differs([&](Delivery& to) { to.stream.tables.push_back({"public", "u"}); }));
  EXPECT_TRUE(differs([&](Delivery& to) { to.stream.mask_key = "another"; }));
  EXPECT_TRUE(differs([&](Delivery& to) { to.destination.parameters.memory_budget_mb = 512; }));

  EXPECT_FALSE(differs([&](Delivery& to) { to.destination.parameters.group_size = 1; })) << "it is live";
  EXPECT_FALSE(differs([&](Delivery& to) { to.stream.parameters.group_size = 1; }));
  EXPECT_FALSE(differs([&](Delivery& to) { to.stream.name = "renamed"; }));
  EXPECT_FALSE(differs([&](Delivery& to) { to.stream.status = control::DesiredStatus::dropped; }));
  EXPECT_FALSE(differs([&](Delivery& to) { to.destination.id = "adopted"; }));
  EXPECT_FALSE(differs([&](Delivery& to) { to.destination.conninfo.text = "host=elsewhere"; }));
  EXPECT_FALSE(differs([&](Delivery& to) { to.stream.source.reads_standby = true; }));
}

}  // namespace
}  // namespace thalweg::daemon
