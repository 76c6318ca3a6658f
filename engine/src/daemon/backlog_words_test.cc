#include "daemon/backlog_words.h"

#include <gtest/gtest.h>

namespace thalweg::daemon {
namespace {

const std::string kFull = "spilled LCRs take 16 MiB in P, which queue_spill_limit_mb limits to 16 MiB";

TEST(BacklogWordsTest, AFullBacklogSaysWhyOnce) {
  std::string only = kFull;
  add_full_backlog(only, kFull);
  EXPECT_EQ(only, kFull + ". Its backlog takes no more: until it does, the source keeps its WAL.");
  std::string beside = "connection refused";
  add_full_backlog(beside, kFull);
  EXPECT_EQ(beside,
            "connection refused. Its backlog takes no more (" + kFull + "): until it does, the source keeps its WAL.");
}

TEST(BacklogWordsTest, ABacklogThatIsNotDurableSaysWhyOnce) {
  std::string only = "fsync failed";
  add_unsafe_backlog(only, "fsync failed");
  EXPECT_EQ(only,
            "fsync failed. Its backlog could not be made durable: what is not is read from the source again, which "
            "keeps its WAL until then.");
}

}  // namespace
}  // namespace thalweg::daemon
