#include "capture/shutdown_watch.h"

#include <gtest/gtest.h>

namespace thalweg::capture {
namespace {

using namespace std::chrono_literals;
const ShutdownWatch::Time kStart{1h};

TEST(ShutdownWatch, GivesUpWhereNothingBecomesDurable) {
  ShutdownWatch watch;
  EXPECT_FALSE(watch.look(kStart, false, {5}));
  EXPECT_FALSE(watch.look(kStart + 60s, true, {5})) << "it has only just begun";
  EXPECT_FALSE(watch.look(kStart + 69s, true, {5}));
  EXPECT_TRUE(watch.look(kStart + 70s, true, {5}));
}

TEST(ShutdownWatch, HasPatienceWhereSomethingDoes) {
  ShutdownWatch watch;
  EXPECT_FALSE(watch.look(kStart, true, {5}));
  EXPECT_FALSE(watch.look(kStart + 9s, true, {6}));
  EXPECT_FALSE(watch.look(kStart + 18s, true, {6}));
  EXPECT_TRUE(watch.look(kStart + 19s, true, {6}));
}

TEST(ShutdownWatch, AServerThatStaysIsNoneThatEnds) {
  ShutdownWatch watch;
  EXPECT_FALSE(watch.look(kStart, true, {5}));
  EXPECT_FALSE(watch.look(kStart + 9s, false, {5}));
  EXPECT_FALSE(watch.look(kStart + 11s, true, {5}));
}

}  // namespace
}  // namespace thalweg::capture
