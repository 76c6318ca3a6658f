#include "queue/backlog_ledger.h"

#include <gtest/gtest.h>

#include "lcr/frame_samples.h"

namespace thalweg::queue {
namespace {

void add(BacklogLedger& ledger, const std::vector<std::byte>& frame, uint32_t segment) {
  const auto view = lcr::FrameView::decode(frame);
  ASSERT_TRUE(view) << view.error().message;
  ledger.appended(*view, segment);
}

lcr::TransactionMark mark(uint64_t commit) {
  return {.commit_lsn = {commit}, .end_lsn = {commit + 8}, .commit_time = {}};
}

void add_whole(BacklogLedger& ledger, base::Xid xid, uint64_t commit, uint32_t segment) {
  add(ledger, lcr::make_begin_frame(xid, mark(commit)), segment);
  add(ledger, lcr::make_insert_frame(xid, {commit - 1}, "x"), segment);
  add(ledger, lcr::make_commit_frame(xid, false, mark(commit)), segment);
}

TEST(BacklogLedger, KeepsTheBeginningOfAStreamedTransactionUntilItIsDurable) {
  BacklogLedger ledger;
  add(ledger, lcr::make_insert_frame({9}, {1000}, "x"), 2);  // nothing has committed in this segment
  add(ledger, lcr::make_insert_frame({9}, {1001}, "x"), 3);
  add_whole(ledger, {10}, 2000, 4);
  add_whole(ledger, {11}, 3000, 5);
  add(ledger, lcr::make_commit_frame({9}, true, mark(4000)), 5);
  add_whole(ledger, {12}, 5000, 6);
  EXPECT_EQ(ledger.first_needed({3008}, 6), 2U);
  EXPECT_EQ(ledger.first_needed({4000}, 6), 2U);
  EXPECT_EQ(ledger.first_needed({4008}, 6), 6U);
  EXPECT_EQ(ledger.first_needed({5008}, 6), 6U) << "the segment that takes the next frame stays";
}

TEST(BacklogLedger, KeepsWhatIsOpen) {
  BacklogLedger ledger;
  add(ledger, lcr::make_insert_frame({9}, {1000}, "x"), 1);
  add_whole(ledger, {10}, 2000, 2);
  EXPECT_EQ(ledger.first_needed({2008}, 3), 1U);
  add(ledger, lcr::make_abort_frame({9}, {9}, {2500}), 3);
  EXPECT_EQ(ledger.first_needed({2008}, 3), 3U);
}

}  // namespace
}  // namespace thalweg::queue
