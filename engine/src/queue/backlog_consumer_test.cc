// The backlog of one destination of several: on disk while nobody reads, in memory once an agent has caught up, whole
// for the next agent as long as nothing was taken from memory.

#include "queue/backlog_consumer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>

#include "base/stopped_clock.h"
#include "lcr/frame_samples.h"
#include "queue/queue_spiller.h"

namespace thalweg::queue {
namespace {

using namespace std::chrono_literals;
using lcr::FrameKind;
namespace fs = std::filesystem;

std::vector<std::byte> row(base::Xid xid, uint64_t lsn, size_t bytes = 100) {
  std::mt19937_64 random(lsn);  // so that it does not compress
  std::string value;
  while (value.size() < bytes) {
    const uint64_t next = random();
    value.append(reinterpret_cast<const char*>(&next), sizeof next);
  }
  return lcr::make_insert_frame(xid, {lsn}, value);
}

lcr::TransactionMark mark(uint64_t commit) {
  return {.commit_lsn = {commit}, .end_lsn = {commit + 8}, .commit_time = {}};
}

class BacklogConsumerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_backlog_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    space_.emplace(directory_, uint64_t{1} << 30, clock_, 0);
    consumer_ = std::make_unique<BacklogConsumer>(
        queue_, 0, *space_, clock_, BacklogOptions{.folder = directory_ / "log", .session = 1, .from = {1000}});
  }
  void TearDown() override {
    consumer_.reset();
    fs::remove_all(directory_);
  }

  void put(std::span<const std::byte> frame) {
    const auto room = queue_.reserve(frame.size(), 0us);
    ASSERT_FALSE(room.empty());
    std::ranges::copy(frame, room.begin());
    queue_.enqueue();
  }
  // A transaction that comes whole, of `rows` rows; ends at commit + 8.
  void put_transaction(uint64_t commit, int rows = 3, size_t bytes = 100) {
    put(lcr::make_begin_frame({static_cast<uint32_t>(commit)}, mark(commit)));
    for (int i = 0; i < rows; ++i) put(row({static_cast<uint32_t>(commit)}, commit - 1, bytes));
    put(lcr::make_commit_frame({static_cast<uint32_t>(commit)}, false, mark(commit)));
  }
  // Everything there is: kinds and LSNs, in order.
  std::vector<std::pair<FrameKind, uint64_t>> take(BacklogConsumer& consumer) {
    std::vector<std::pair<FrameKind, uint64_t>> out;
    while (true) {
      const auto frame = consumer.browse(0us);
      EXPECT_TRUE(frame) << frame.error().message;
      if (!frame || *frame == nullptr) return out;
      const auto view = lcr::FrameView::trusted(*frame);
      out.emplace_back(view.kind(), view.lsn().value);
      consumer.dequeue();
    }
  }
  static size_t commits(const std::vector<std::pair<FrameKind, uint64_t>>& frames) {
    return static_cast<size_t>(
        std::ranges::count_if(frames, [](const auto& frame) { return frame.first == FrameKind::commit; }));
  }

  fs::path directory_;
  base::StoppedClock clock_;  // the log is synced by time too: a test says when
  std::optional<spill::SpillSpace> space_;
  LcrQueue queue_{{.slots = 1024, .memory_bytes = size_t{4} << 20, .consumers = 1}};
  std::unique_ptr<BacklogConsumer> consumer_;
};

TEST_F(BacklogConsumerTest, WithoutAnAgentItIsDurableOnDisk) {
  for (uint64_t commit = 2000; commit < 3000; commit += 100) put_transaction(commit);
  EXPECT_EQ(consumer_->logged(), base::Lsn{1000});
  while (consumer_->move()) {
  }
  EXPECT_EQ(queue_.lag(0).frames, 0u);
  const BacklogStatistics statistics = consumer_->statistics();
  EXPECT_TRUE(statistics.on_disk);
  EXPECT_EQ(statistics.frames, 50u);
  EXPECT_EQ(statistics.lcrs, 30u);
  consumer_->close();
  EXPECT_EQ(consumer_->logged(), base::Lsn{2908});

  consumer_.reset();  // the process ends
  auto log = spill::DurableLog::open(*space_, directory_ / "log");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->from(), base::Lsn{1000});
  EXPECT_EQ((*log)->synced(), base::Lsn{2908});
  EXPECT_EQ((*log)->frames_left(), 50u);
}

TEST_F(BacklogConsumerTest, AnAgentReadsTheDiskThenMemory) {
  put_transaction(2000);
  while (consumer_->move()) {
  }
  put_transaction(2100);
  EXPECT_EQ(commits(take(*consumer_)), 2u);
  EXPECT_FALSE(consumer_->move());  // an agent reads: nothing goes to the disk
  put_transaction(2200);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  EXPECT_EQ(consumer_->statistics().spilled_lcrs, 3u);
  EXPECT_FALSE(consumer_->leave({}));  // what it took from memory comes from the source only
  EXPECT_TRUE(fs::exists(directory_ / "log"));
  consumer_->confirm({2208});
  EXPECT_FALSE(fs::exists(directory_ / "log"));
}

TEST_F(BacklogConsumerTest, TheNextAgentGetsItAgain) {
  put_transaction(2000);
  put_transaction(2100);
  while (consumer_->move()) {
  }
  consumer_->stay_on_disk(true);
  EXPECT_EQ(commits(take(*consumer_)), 2u);
  put_transaction(2200);
  EXPECT_EQ(commits(take(*consumer_)), 1u);  // the agent takes it through the disk by itself
  EXPECT_TRUE(consumer_->leave({}));
  put_transaction(2300);
  EXPECT_EQ(commits(take(*consumer_)), 4u);
}

TEST_F(BacklogConsumerTest, AnAgentThatNeverReadLeavesEverything) {
  put_transaction(2000);
  EXPECT_TRUE(consumer_->leave({}));
  while (consumer_->move()) {
  }
  EXPECT_EQ(commits(take(*consumer_)), 1u);
}

TEST_F(BacklogConsumerTest, ALogAfterOneThatIsDurableHasTheDescriptions) {
  put(lcr::make_table_frame(lcr::sample_table()));
  put_transaction(2000);
  while (consumer_->move()) {
  }
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  consumer_->confirm({2008});
  EXPECT_FALSE(fs::exists(directory_ / "log"));
  EXPECT_TRUE(consumer_->leave({2008}));
  EXPECT_EQ(consumer_->begins_at(), base::Lsn{2008});
  put_transaction(2100);
  while (consumer_->move()) {
  }
  const auto next = take(*consumer_);
  ASSERT_EQ(commits(next), 1u);
  EXPECT_EQ(next.front().first, FrameKind::table);
}

TEST_F(BacklogConsumerTest, OneThatStaysOnDiskIsSyncedWhileItIsRead) {
  consumer_->stay_on_disk(true);
  put_transaction(2000);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  consumer_->close();
  EXPECT_EQ(consumer_->logged(), base::Lsn{2008});
}

// Segments of 16 MiB: what is confirmed goes, but not what an open streamed transaction began in, and a reader that
// begins in the middle has every table's description.
TEST_F(BacklogConsumerTest, ConfirmedSegmentsGoFromTheFront) {
  auto table = lcr::sample_table();
  put(lcr::make_table_frame(table));
  put(row({9}, 1999));  // of a streamed transaction
  uint64_t commit = 2000;
  const auto fill = [&](int transactions) {
    for (int i = 0; i < transactions; ++i, commit += 100) {
      put_transaction(commit, 2, 500'000);
      consumer_->move();
    }
  };
  fill(40);
  while (consumer_->move()) {
  }
  consumer_->stay_on_disk(true);
  take(*consumer_);
  const auto segments = [&] {
    return std::distance(fs::directory_iterator(directory_ / "log"), fs::directory_iterator()) - 1;  // the mark
  };
  const auto before = segments();
  ASSERT_GT(before, 1);
  consumer_->confirm({commit});
  EXPECT_EQ(segments(), before);  // transaction 9 is open
  EXPECT_EQ(consumer_->begins_at(), base::Lsn{1000});
  put(lcr::make_commit_frame({9}, true, mark(commit)));
  take(*consumer_);
  // The log keeps what its newest mark names, so it goes once a mark names the last segment.
  clock_.now += 1s;
  consumer_->move();
  consumer_->confirm({commit + 8});
  EXPECT_EQ(segments(), 1);
  EXPECT_TRUE(consumer_->leave({}));
  EXPECT_EQ(consumer_->begins_at(), base::Lsn{commit + 8}) << "whoever is behind it lacks something";
  const auto again = take(*consumer_);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again.front().first, FrameKind::table);
}

// Its destination is paused while the capture goes on.
class CutBacklogTest : public BacklogConsumerTest {
 protected:
  void SetUp() override {
    BacklogConsumerTest::SetUp();
    put(lcr::make_table_frame(lcr::sample_table()));
    put_transaction(2000);
    EXPECT_EQ(commits(take(*consumer_)), 1u);
  }
  // Moves all frames to disk, and returns those that the next agent gets.
  std::vector<std::pair<FrameKind, uint64_t>> take_from_disk() {
    while (consumer_->move()) {
    }
    EXPECT_EQ(queue_.lag(0).frames, 0u);
    return take(*consumer_);
  }
};

TEST_F(CutBacklogTest, GoesOnDiskWhereItsAgentGotDone) {
  EXPECT_FALSE(consumer_->cut());
  put_transaction(2100);
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_TRUE(consumer_->is_cut());
  EXPECT_EQ(consumer_->taken(), base::Lsn{2008});
  EXPECT_TRUE(consumer_->leave({2008}));
  put_transaction(2200);
  const auto again = take_from_disk();
  EXPECT_EQ(commits(again), 2u);
  EXPECT_EQ(again.front().first, FrameKind::table);  // it came once, before the cut
  put_transaction(2300);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  EXPECT_FALSE(consumer_->leave({2208}));  // this agent was not cut, and had something of memory's
}

TEST_F(CutBacklogTest, TheNextAgentGetsTheDescriptionsThoughNothingHasComeMeanwhile) {
  consumer_->cut();
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_TRUE(consumer_->leave({2008}));
  EXPECT_TRUE(take(*consumer_).empty());
  put_transaction(2100);
  const auto next = take(*consumer_);
  ASSERT_EQ(commits(next), 1u);
  EXPECT_EQ(next.front().first, FrameKind::table);
}

TEST_F(CutBacklogTest, ItsLogSaysWhereItBegins) {
  consumer_->cut();
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_TRUE(consumer_->leave({2008}));
  put_transaction(2100);
  while (consumer_->move()) {
  }
  consumer_->close();
  consumer_.reset();  // the process ends
  auto log = spill::DurableLog::open(*space_, directory_ / "log");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->from(), base::Lsn{2008});
  EXPECT_EQ((*log)->synced(), base::Lsn{2108});
}

TEST_F(CutBacklogTest, WhatWasBrowsedIsStillThere) {
  put_transaction(2100);
  const auto before = consumer_->browse(0us);
  ASSERT_TRUE(before && *before != nullptr);
  consumer_->cut();
  consumer_->release();  // its agent waits for room
  const auto again = consumer_->browse(0us);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *before);
  EXPECT_FALSE(consumer_->is_cut());
  EXPECT_EQ(commits(take(*consumer_)), 1u);  // what has begun is taken whole
  EXPECT_TRUE(consumer_->is_cut());
}

TEST_F(CutBacklogTest, IsCutOnlyWhereNothingIsOpen) {
  put(row({7}, 2050));  // of a transaction that comes in pieces
  put_transaction(2100);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  consumer_->cut();
  put_transaction(2200);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  EXPECT_FALSE(consumer_->is_cut());
  put(lcr::make_commit_frame({7}, true, mark(2300)));
  put_transaction(2400);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  EXPECT_TRUE(consumer_->is_cut());
  EXPECT_TRUE(consumer_->leave({2308}));
  EXPECT_EQ(commits(take_from_disk()), 1u);
}

TEST_F(CutBacklogTest, LosesWhatItsDestinationHasNotGotDone) {
  consumer_->cut();
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_FALSE(consumer_->leave({2000}));
}

TEST_F(CutBacklogTest, WhatHadBeenSpilledComesFirst) {
  for (uint64_t commit = 3000; queue_.lag(0).frames <= queue_.gauges().capacity / 2; commit += 10) {
    put_transaction(commit);
  }
  EXPECT_TRUE(consumer_->move());  // spilled, not durable
  EXPECT_TRUE(consumer_->is_spilling());
  const auto waiting = consumer_->statistics().frames;
  consumer_->cut();
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_TRUE(consumer_->leave({2008}));
  put_transaction(9000);
  const auto again = take_from_disk();
  EXPECT_EQ(again.size(), 1 + waiting + 5);  // the table's description
  std::vector<uint64_t> committed;
  for (const auto& [kind, lsn] : again) {
    if (kind == FrameKind::commit) committed.push_back(lsn);
  }
  EXPECT_TRUE(std::ranges::is_sorted(committed));
  EXPECT_EQ(committed.back(), 9000u);
}

TEST_F(CutBacklogTest, IsDiscardedWithItsDestination) {
  consumer_->cut();
  EXPECT_TRUE(take(*consumer_).empty());
  EXPECT_TRUE(consumer_->leave({2008}));
  put_transaction(2100);
  while (consumer_->move()) {
  }
  consumer_->discard();
  EXPECT_FALSE(fs::exists(directory_ / "log"));
  put_transaction(2200);
  while (consumer_->move()) {
  }
  EXPECT_EQ(queue_.lag(0).frames, 0u);
  EXPECT_FALSE(fs::exists(directory_ / "log"));
}

TEST_F(BacklogConsumerTest, AFullDiskKeepsTheRestInTheQueue) {
  space_->set_limit(1);
  put_transaction(2000);
  EXPECT_TRUE(consumer_->move());  // buffered
  put_transaction(2100, 1, 200'000);
  EXPECT_FALSE(consumer_->move());
  ASSERT_TRUE(consumer_->statistics().failure);
  EXPECT_EQ(consumer_->statistics().failure->code, base::ErrorCode::spill_limit_reached);
  EXPECT_GT(queue_.lag(0).frames, 0u);
  EXPECT_EQ(consumer_->logged(), base::Lsn{1000});
  space_->set_limit(uint64_t{1} << 30);
  while (consumer_->move()) {
  }
  EXPECT_FALSE(consumer_->statistics().failure);
  EXPECT_EQ(commits(take(*consumer_)), 2u);
}

// Its last frames are in no file yet, and there is no room for them: without them nothing could be confirmed, and so
// nothing removed.
TEST_F(BacklogConsumerTest, AFullLogIsReadToItsEnd) {
  space_->set_limit(1'000'000);
  uint64_t commit = 2000;
  for (; !consumer_->statistics().failure; commit += 100) {
    put_transaction(commit, 3, 20'000);
    while (consumer_->move()) {
    }
  }
  const auto frames = take(*consumer_);
  EXPECT_EQ(commits(frames), (commit - 2000) / 100);
  EXPECT_LE(space_->use().bytes, 1'000'000 + 100'000) << "a block above it";
  put_transaction(commit);
  EXPECT_EQ(commits(take(*consumer_)), 1u);
  consumer_->confirm({commit + 8});
  EXPECT_EQ(space_->use().bytes, 0u);
}

TEST_F(BacklogConsumerTest, ASegmentHasAllDescriptionsThoughTheDiskWasFullMeanwhile) {
  consumer_.reset();
  consumer_ = std::make_unique<BacklogConsumer>(
      queue_, 0, *space_, clock_,
      BacklogOptions{.folder = directory_ / "log", .session = 1, .from = {1000}, .segment_bytes = 200'000});
  constexpr size_t kTables = 200;  // two blocks of descriptions
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < kTables; ++i) {
    lcr::TableDescription table = lcr::sample_table();
    table.relation = {20'000 + i};
    for (int part = 0; part < 30; ++part) table.columns[0].name += std::to_string(random());
    put(lcr::make_table_frame(table));
  }
  put_transaction(2000, 1, 300'000);
  while (consumer_->move()) {
  }
  consumer_->close();
  put_transaction(2100);
  space_->set_limit(space_->use().bytes + 10'000);
  EXPECT_FALSE(consumer_->move());
  ASSERT_TRUE(consumer_->statistics().failure);
  space_->set_limit(uint64_t{1} << 30);
  consumer_->stay_on_disk(true);
  EXPECT_EQ(commits(take(*consumer_)), 2u);
  clock_.now += 1s;
  consumer_->move();
  consumer_->confirm({2108});
  EXPECT_TRUE(consumer_->leave({2108}));
  const auto again = take(*consumer_);
  EXPECT_EQ(commits(again), 1u);
  EXPECT_EQ(std::ranges::count(again, FrameKind::table, &std::pair<FrameKind, uint64_t>::first), kTables);
}

TEST_F(BacklogConsumerTest, ThreadsGetEverythingOnceInOrder) {
  constexpr uint64_t kTransactions = 4000;
  QueueSpiller spiller({consumer_.get()});
  std::thread producer([&] {
    for (uint64_t commit = 2000; commit < 2000 + kTransactions; ++commit) {
      for (const auto& frame : {lcr::make_begin_frame({1}, mark(commit)), row({1}, commit),
                                lcr::make_commit_frame({1}, false, mark(commit))}) {
        const auto room = queue_.reserve(frame.size(), 60s);
        if (room.empty()) return;
        std::ranges::copy(frame, room.begin());
        queue_.enqueue();
      }
    }
    queue_.flush();
  });
  uint64_t next = 2000;
  while (next < 2000 + kTransactions) {
    const auto frame = consumer_->browse(60s);
    ASSERT_TRUE(frame);
    ASSERT_NE(*frame, nullptr);
    const auto view = lcr::FrameView::trusted(*frame);
    ASSERT_EQ(view.lsn().value, next);
    if (view.kind() == FrameKind::commit) {
      if (++next % 1000 == 0) consumer_->confirm({next});
    }
    consumer_->dequeue();
  }
  producer.join();
}

}  // namespace
}  // namespace thalweg::queue
