#include "capture/logical/silence_watch.h"

#include <gtest/gtest.h>

namespace thalweg::capture {
namespace {

using namespace std::chrono_literals;
using Verdict = SilenceWatch::Verdict;
const SilenceWatch::Time kStart{1h};

TEST(SilenceWatch, AsksOnceAndThenGivesUp) {
  SilenceWatch watch;
  EXPECT_EQ(watch.look(kStart, 0), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 29s, 0), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 30s, 0), Verdict::ask);
  EXPECT_EQ(watch.look(kStart + 59s, 0), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 60s, 0), Verdict::gone);
}

TEST(SilenceWatch, AnAnswerBeginsAnew) {
  SilenceWatch watch;
  EXPECT_EQ(watch.look(kStart, 5), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 31s, 5), Verdict::ask);
  EXPECT_EQ(watch.look(kStart + 32s, 6), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 61s, 6), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 62s, 6), Verdict::ask);
}

// The agent was held back by its queue, or the machine slept: the source has had no chance to answer.
TEST(SilenceWatch, NobodyIsGivenUpUnasked) {
  SilenceWatch watch;
  EXPECT_EQ(watch.look(kStart, 5), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 500s, 5), Verdict::ask);
  EXPECT_EQ(watch.look(kStart + 529s, 5), Verdict::fine);
  EXPECT_EQ(watch.look(kStart + 530s, 5), Verdict::gone);
}

}  // namespace
}  // namespace thalweg::capture
