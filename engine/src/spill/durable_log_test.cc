// A log that outlives its process: what a crash leaves is what was synced, and damage is never taken for data.

#include "spill/durable_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lcr/frame_samples.h"
#include "spill/log_mark.h"
#include "support/engine_directory.h"

namespace thalweg::spill {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Its LSN is the sequence; some are larger than a block.
std::vector<std::byte> frame_of(uint64_t sequence) {
  const uint64_t mixed = sequence * 0x9E3779B97F4A7C15ULL >> 40;
  const size_t bytes = mixed % 211 == 0 ? 150'000 : mixed % 400;
  return lcr::make_insert_frame({1}, {sequence}, std::string(bytes, static_cast<char>(mixed)));
}

class DurableLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_durable_log_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    space_.emplace(directory_, uint64_t{1} << 30, clock_, 0);
    log_ = *DurableLog::create(*space_, folder(), 7, base::Lsn{100});
  }
  void TearDown() override {
    log_.reset();
    fs::remove_all(directory_);
  }

  fs::path folder() const { return directory_ / "log"; }
  void append(uint64_t first, uint64_t end) {
    for (; first < end; ++first) ASSERT_TRUE(log_->append(frame_of(first)));
  }
  // Reads what there is; the frames must be those from `first` on. Returns the end.
  static uint64_t read(DurableLog& log, uint64_t first) {
    while (true) {
      auto run = log.next_run();
      EXPECT_TRUE(run) << run.error().message;
      if (!run || run->empty()) return first;
      for (auto left = *run; !left.empty();) {
        const auto frame = lcr::FrameView::trusted(left.data());
        EXPECT_TRUE(std::ranges::equal(frame.bytes(), frame_of(first)));
        left = left.subspan(frame.header().length);
        ++first;
      }
    }
  }
  // As another process would find it.
  base::Result<std::unique_ptr<DurableLog>> reopen() {
    log_.reset();
    return DurableLog::open(*space_, folder());
  }
  void damage(const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char was = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(was ^ 0x55));
  }

  fs::path directory_;
  base::SystemClock clock_;
  std::optional<SpillSpace> space_;
  std::unique_ptr<DurableLog> log_;
};

TEST_F(DurableLogTest, AReaderFollowsTheWriterThroughItsSegments) {
  append(0, 500);
  EXPECT_EQ(read(*log_, 0), 500u);  // what is buffered, too
  EXPECT_TRUE(log_->read_all());
  ASSERT_TRUE(log_->end_segment());
  append(500, 900);
  EXPECT_EQ(log_->frames_left(), 400u);
  EXPECT_EQ(read(*log_, 500), 900u);
  log_->drop_before(log_->segment(), {100});
  append(900, 950);
  log_->rewind();
  EXPECT_EQ(read(*log_, 500), 950u);  // the first segment has gone
}

// The log's frames as a reader gets them: " table 3" with the version, or " row".
std::string kinds_of(DurableLog& log) {
  std::string out;
  for (auto run = log.next_run(); run && !run->empty(); run = log.next_run()) {
    for (auto left = *run; !left.empty();) {
      const auto frame = lcr::FrameView::trusted(left.data());
      const bool is_table = frame.kind() == lcr::FrameKind::table;
      out += is_table ? " table " + std::to_string(frame.table()->version) : " row";
      left = left.subspan(frame.header().length);
    }
  }
  return out;
}

TEST_F(DurableLogTest, ASegmentRepeatsDescriptionsForAReaderThatBeginsThere) {
  lcr::TableDescription table = lcr::sample_table();
  const auto third = lcr::make_table_frame(table);
  table.version = 4;
  const auto fourth = lcr::make_table_frame(table);
  const std::vector<std::vector<std::vector<std::byte>>> segments = {
      {third, frame_of(1)},
      {third, frame_of(2)},
      {third, third, frame_of(3)},   // the source has repeated it
      {third, fourth, frame_of(4)},  // it has changed
      {fourth, frame_of(5), fourth, frame_of(6)},
  };
  for (const auto& segment : segments) {
    for (const auto& frame : segment) ASSERT_TRUE(log_->append(frame));
    ASSERT_TRUE(log_->end_segment());
  }
  EXPECT_EQ(kinds_of(*log_), " table 3 row row table 3 row table 4 row row table 4 row");
  log_->drop_before(3, {100});
  log_->rewind();
  EXPECT_EQ(kinds_of(*log_), " table 3 table 4 row row table 4 row");
  EXPECT_TRUE(log_->read_all());
}

TEST_F(DurableLogTest, WhatWasSyncedSurvivesAndTheRestNeverWas) {
  append(0, 300);
  ASSERT_TRUE(log_->end_segment());
  append(300, 700);
  ASSERT_TRUE(log_->sync({5000}));
  append(700, 2000);  // blocks of it reach the file
  auto found = reopen();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->id(), 7u);
  EXPECT_EQ((*found)->from(), base::Lsn{100});
  EXPECT_EQ((*found)->synced(), base::Lsn{5000});
  EXPECT_EQ((*found)->frames_left(), 700u);
  EXPECT_GT(space_->use().bytes, 0u);
  EXPECT_EQ(read(**found, 0), 700u);
  (*found)->remove();
  EXPECT_EQ(space_->use().bytes, 0u);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(DurableLogTest, SegmentsThatWentAfterTheLastMarkAreNotMissed) {
  append(0, 300);
  ASSERT_TRUE(log_->end_segment());
  append(300, 600);
  ASSERT_TRUE(log_->sync({5000}));
  EXPECT_EQ(read(*log_, 0), 600u);
  log_->drop_before(1, {2000});
  auto found = reopen();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(read(**found, 300), 600u);
}

// A destination that was restored to an earlier state lacks what has gone, however the process ends.
TEST_F(DurableLogTest, ALogBeginsLaterOnceSegmentsHaveGone) {
  append(0, 300);
  ASSERT_TRUE(log_->end_segment());
  append(300, 600);
  ASSERT_TRUE(log_->sync({5000}));
  append(600, 650);
  EXPECT_EQ(read(*log_, 0), 650u);  // which writes what was buffered
  log_->drop_before(0, {1000});
  EXPECT_EQ(log_->from(), base::Lsn{100}) << "nothing has gone";
  log_->drop_before(1, {2000});
  EXPECT_EQ(log_->from(), base::Lsn{2000});
  auto found = reopen();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->from(), base::Lsn{2000});
  EXPECT_EQ((*found)->synced(), base::Lsn{5000});
  EXPECT_EQ((*found)->frames_left(), 350u);
  EXPECT_EQ(read(**found, 300), 650u);
}

TEST_F(DurableLogTest, TheLastSegmentOfAMarkStaysUntilThereIsAnotherMark) {
  append(0, 300);
  ASSERT_TRUE(log_->sync({5000}));
  ASSERT_TRUE(log_->end_segment());
  append(300, 600);
  EXPECT_EQ(read(*log_, 0), 600u);
  log_->drop_before(1, {2000});
  fs::copy(folder(), directory_ / "as_a_crash_leaves_it");
  ASSERT_TRUE(log_->sync({6000}));
  log_->drop_before(1, {2000});
  EXPECT_FALSE(fs::exists(folder() / "00000000"));
  const auto found = DurableLog::open(*space_, directory_ / "as_a_crash_leaves_it");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->synced(), base::Lsn{5000});
  EXPECT_EQ(read(**found, 0), 300u);
}

TEST_F(DurableLogTest, ATornMarkLeavesTheOneBefore) {
  append(0, 300);
  ASSERT_TRUE(log_->sync({5000}));  // the second mark: the first one was made with the log
  append(300, 700);
  ASSERT_TRUE(log_->sync({6000}));
  damage(folder() / "mark", static_cast<std::streamoff>(kMarkStride) + 40);
  auto found = reopen();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->synced(), base::Lsn{5000});
  EXPECT_EQ(read(**found, 0), 300u);
}

class LaterClock final : public base::Clock {
 public:
  explicit LaterClock(std::chrono::hours later) : later_(later) {}
  base::UnixMicros unix_now() const override {
    return {now_.unix_now().value + std::chrono::duration_cast<std::chrono::microseconds>(later_).count()};
  }
  std::chrono::steady_clock::time_point steady_now() const override { return now_.steady_now(); }

 private:
  base::SystemClock now_;
  std::chrono::hours later_;
};

TEST_F(DurableLogTest, ItIsAsOldForTheNextProcess) {
  append(0, 500);
  ASSERT_TRUE(log_->sync({200}));
  log_.reset();
  const auto age_after = [&](std::chrono::hours later) {
    const LaterClock clock(later);
    SpillSpace space(directory_, uint64_t{1} << 30, clock, 0);
    const auto log = DurableLog::open(space, folder());
    EXPECT_TRUE(log && *log);
    return space.use().age;
  };
  EXPECT_GE(age_after(5h), 4h);
  EXPECT_LT(age_after(-5h), 1h);  // the wall clock was set back
}

TEST_F(DurableLogTest, DamageIsAnErrorAndNeverData) {
  append(0, 700);
  ASSERT_TRUE(log_->sync({5000}));
  auto found = reopen();
  ASSERT_TRUE(found);
  damage(folder() / "00000000", 5000);
  auto run = (*found)->next_run();
  while (run && !run->empty()) run = (*found)->next_run();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, base::ErrorCode::backlog_damaged);

  fs::resize_file(folder() / "00000000", 5000);
  auto shorter = DurableLog::open(*space_, folder());
  ASSERT_FALSE(shorter);
  EXPECT_EQ(shorter.error().code, base::ErrorCode::backlog_damaged);
  damage(folder() / "mark", 0);
  damage(folder() / "mark", kMarkStride);
  auto unmarked = DurableLog::open(*space_, folder());
  ASSERT_FALSE(unmarked);
  EXPECT_EQ(unmarked.error().code, base::ErrorCode::backlog_damaged);
}

TEST_F(DurableLogTest, OneThatWasBeingBegunHoldsNothing) {
  damage(folder() / "mark", kMarkStride);  // the first one: a loss of power before it was synced
  const auto torn = reopen();
  ASSERT_TRUE(torn) << torn.error().message;
  EXPECT_EQ(*torn, nullptr);
  EXPECT_FALSE(fs::exists(folder()));
  fs::create_directory(folder());
  const auto unmarked = DurableLog::open(*space_, folder());
  ASSERT_TRUE(unmarked) << unmarked.error().message;
  EXPECT_EQ(*unmarked, nullptr);
}

TEST_F(DurableLogTest, WithoutSpaceNothingIsLostAndItGoesOn) {
  space_->set_limit(300'000);
  uint64_t appended = 0;
  base::Result<void> last;
  while ((last = log_->append(frame_of(appended)))) ++appended;
  EXPECT_EQ(last.error().code, base::ErrorCode::spill_limit_reached);
  EXPECT_FALSE(log_->append(frame_of(appended)));
  space_->set_limit(uint64_t{1} << 30);
  append(appended, appended + 100);
  ASSERT_TRUE(log_->sync({5000}));
  EXPECT_EQ(read(*log_, 0), appended + 100);
}

// engine/test/golden/spill_mark/mark.hex is the format, version 1: a file with a torn mark behind the one that counts.
TEST(LogMark, IsStillReadAndWritten) {
  std::ifstream in(fs::path(test::engine_directory()) / "test/golden/spill_mark/mark.hex");
  std::vector<std::byte> golden;
  for (std::string byte; in >> byte;) golden.push_back(static_cast<std::byte>(std::stoi(byte, nullptr, 16)));
  ASSERT_EQ(golden.size(), kMarkStride + kMarkBytes);
  LogMark mark{.magic = 0,
               .sequence = 0x0102030405060708,
               .log = 12,
               .from = 0x1600000000,
               .synced = 0x16000000A0,
               .frames = 700,
               .changes = 650,
               .first_segment = 3,
               .end_segment = 6,
               .last_bytes = 4711,
               .last_blocks = 2,
               .last_ended = 1,
               .checksum = 0};
  seal_mark(mark);
  const auto bytes = std::as_bytes(std::span(&mark, 1));
  EXPECT_TRUE(std::ranges::equal(std::span(golden).first(kMarkBytes), bytes));
  const auto read = newest_mark(golden);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sequence, 0x0102030405060708u);
  EXPECT_EQ(read->last_bytes, 4711u);
}

TEST(LogMark, IsItsBytesOrNone) {
  LogMark mark{};
  mark.sequence = 3;
  mark.end_segment = 9;
  seal_mark(mark);
  const auto bytes = std::as_bytes(std::span(&mark, 1));
  ASSERT_TRUE(decode_mark(bytes));
  EXPECT_EQ(decode_mark(bytes)->end_segment, 9u);
  EXPECT_FALSE(decode_mark(bytes.first(kMarkBytes - 1)));
  for (size_t i = 0; i < kMarkBytes; ++i) {
    std::vector<std::byte> damaged(bytes.begin(), bytes.end());
    damaged[i] ^= std::byte{1};
    EXPECT_FALSE(decode_mark(damaged)) << i;
  }
}

}  // namespace
}  // namespace thalweg::spill
