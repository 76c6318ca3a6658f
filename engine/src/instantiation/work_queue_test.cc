#include "instantiation/work_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "base/clock.h"

namespace thalweg::instantiation {
namespace {

Step range(int number) { return RangeStep{.number = number, .range = {}}; }
Step build(std::string name) {
  return BuildStep{{.part = Part::index, .table = {}, .name = std::move(name), .sql = {}, .references = {}}};
}
std::string name_of(const WorkQueue::Turn& turn) {
  if (const auto* rows = std::get_if<RangeStep>(turn.step)) return std::to_string(rows->number);
  return std::get<BuildStep>(*turn.step).front().name;
}
TableWork work(std::vector<std::vector<Step>> stages, std::vector<TableName> locks = {}) {
  return {.table = {}, .stages = std::move(stages), .locks = std::move(locks)};
}

TEST(WorkQueueTest, RowsOfAllTablesComeBeforeIndexesOfAny) {
  WorkQueue queue(
      {work({{range(1), range(2)}, {build("key")}, {build("a"), build("b")}}), work({{range(3)}, {build("c")}})});
  std::vector<std::string> order;
  std::vector<bool> rows_left;
  while (const auto turn = queue.take()) {
    order.push_back(name_of(*turn));
    rows_left.push_back(queue.has_rows());
    queue.done(*turn);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"1", "2", "3", "key", "a", "b", "c"}));
  EXPECT_EQ(rows_left, (std::vector<bool>{true, true, false, false, false, false, false}));
}

TEST(WorkQueueTest, AStageWaitsForTheOneBeforeIt) {
  WorkQueue queue({work({{range(1), range(2)}, {build("key")}, {build("a"), build("b")}}), work({{build("other")}})});
  const auto first = queue.take();
  const auto second = queue.take();
  const auto third = queue.take();
  EXPECT_EQ(name_of(*third), "other");
  queue.done(*first);
  queue.done(*third);
  std::thread waits([&] { EXPECT_EQ(name_of(*queue.take()), "key"); });
  queue.done(*second);
  waits.join();
}

TEST(WorkQueueTest, WhatRowsWaitForComesWithTheRows) {
  WorkQueue queue({work({{range(1)}, {build("a")}}), work({{build("key")}, {range(2)}})});
  std::vector<std::string> order;
  while (const auto turn = queue.take()) {
    order.push_back(name_of(*turn));
    queue.done(*turn);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"1", "key", "2", "a"}));
}

TEST(WorkQueueTest, NoTwoWorksThatLockOneTableAtOnce) {
  const TableName parent{"public", "parent"};
  WorkQueue queue({work({{build("first")}}, {{"public", "a"}, parent}),
                   work({{build("second")}}, {{"public", "b"}, parent}), work({{build("third")}}, {{"public", "c"}})});
  const auto first = queue.take();
  const auto third = queue.take();
  EXPECT_EQ(name_of(*third), "third");
  queue.done(*first);
  EXPECT_EQ(name_of(*queue.take()), "second");
}

TEST(WorkQueueTest, OfWhatIsPostponedNothingMoreIsHandedOut) {
  WorkQueue queue({work({{range(1), range(2), range(3)}, {build("a")}, {range(4)}}), work({{range(5)}, {build("b")}})});
  const auto first = queue.take();
  const auto second = queue.take();
  queue.postpone(*first);
  EXPECT_TRUE(queue.has_rows());
  const auto other = queue.take();
  EXPECT_EQ(name_of(*other), "5");
  EXPECT_FALSE(queue.has_rows());
  queue.done(*other);
  queue.postpone(*second);
  const auto last = queue.take();
  EXPECT_EQ(name_of(*last), "b");
  queue.done(*last);
  EXPECT_FALSE(queue.take());
}

TEST(WorkQueueTest, AStepOfAPostponedTableMayStillSucceed) {
  WorkQueue queue({work({{range(1), range(2)}, {build("a")}})});
  const auto first = queue.take();
  const auto second = queue.take();
  queue.postpone(*second);
  queue.done(*first);
  EXPECT_FALSE(queue.has_rows());
  EXPECT_FALSE(queue.take());
}

TEST(WorkQueueTest, EndWakesThoseWhoWait) {
  WorkQueue queue({work({{range(1)}, {build("a")}})});
  const auto taken = queue.take();
  std::thread waits([&] { EXPECT_FALSE(queue.take()); });
  queue.end();
  waits.join();
  queue.done(*taken);
  EXPECT_FALSE(queue.take());
}

TEST(WorkQueueTest, WithoutWorkThereIsNothingToTake) {
  WorkQueue queue({work({}), work({{}, {}})});
  EXPECT_FALSE(queue.take());
}

}  // namespace
}  // namespace thalweg::instantiation
