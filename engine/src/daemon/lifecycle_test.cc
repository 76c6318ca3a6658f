#include "daemon/lifecycle.h"

#include <gtest/gtest.h>

#include <set>

namespace thalweg::daemon {
namespace {

using control::kStateCount;

std::set<State> after(State from) {
  std::set<State> out;
  for (size_t i = 0; i < kStateCount; ++i) {
    if (may_follow(from, static_cast<State>(i))) out.insert(static_cast<State>(i));
  }
  return out;
}

TEST(Lifecycle, OnlyAStartAPauseOrARemovalLeadsOutOfARest) {
  using enum State;
  for (const State rest : {aborted, dropped}) EXPECT_EQ(after(rest), (std::set{disabled, initializing, dropping}));
  // The failure of its earlier backlog counts for a destination that rests, too.
  EXPECT_EQ(after(disabled), (std::set{initializing, retrying, dropping, aborted}));
}

TEST(Lifecycle, WhatIsBeingDroppedIsNeverApplied) {
  using enum State;
  EXPECT_EQ(after(dropping), (std::set{disabled, initializing, aborted, dropped}));
  for (size_t i = 0; i < kStateCount; ++i) {
    const State from = static_cast<State>(i);
    if (from != dropping) {
      EXPECT_FALSE(may_follow(from, dropped)) << names_of(from).phase;
    }
    if (from != dropped) {
      EXPECT_TRUE(from == dropping || may_follow(from, dropping)) << names_of(from).phase;
    }
  }
}

TEST(Lifecycle, WhatWorksRetriesOrDrainsAndCatchesUpBeforeItReplicates) {
  using enum State;
  const std::set works{initializing, instantiating, catching_up, replicating, retrying, draining};
  for (const State from : works) {
    std::set expected = works;
    expected.insert({disabled, dropping, aborted});
    expected.erase(from);
    if (from == instantiating || from == draining) expected.erase(replicating);
    EXPECT_EQ(after(from), expected) << names_of(from).phase;
  }
}

TEST(Lifecycle, SaysWhetherItWasElsewhere) {
  Lifecycle life(State::initializing);
  EXPECT_TRUE(life.enter(State::catching_up));
  EXPECT_FALSE(life.enter(State::catching_up));
  EXPECT_TRUE(life.is_enabled());
  EXPECT_EQ(life.names().phase, "CATCHING UP");
  EXPECT_TRUE(life.enter(State::aborted));
  EXPECT_FALSE(life.is_enabled());
  EXPECT_EQ(life.names().status, "ABORTED");
}

}  // namespace
}  // namespace thalweg::daemon
