#include "spill/spill_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "base/stopped_clock.h"
#include "spill/segment_samples.h"

namespace thalweg::spill {
namespace {

using base::ErrorCode;
using namespace std::chrono_literals;

class SpillLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_spill_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    space_.emplace(directory_, uint64_t{1} << 30, clock_, 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  uint64_t file_bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) bytes += entry.file_size();
    return bytes;
  }

  std::filesystem::path directory_;
  base::StoppedClock clock_;
  std::optional<SpillSpace> space_;
};

using Frames = std::vector<std::vector<std::byte>>;

base::Result<std::vector<std::byte>> drain(LogReader& reader) {
  std::vector<std::byte> out;
  while (true) {
    THALWEG_ASSIGN(const auto run, reader.next_run());
    if (run.empty()) return out;
    out.insert(out.end(), run.begin(), run.end());
  }
}

void expect_frames(const SpillLog& log, const Frames& frames) {
  auto reader = log.read();
  const auto got = drain(reader);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == joined(frames));
  EXPECT_EQ(reader.frames(), frames.size());
}

TEST_F(SpillLogTest, GivesBackWhatWasAppendedAsOftenAsAsked) {
  SpillLog log(*space_, "xid-42", 200'000);
  Frames frames;
  for (unsigned i = 0; i < 3000; ++i) frames.push_back(sample_row(i % 700, i, i % 2 == 0));  // about 1 MiB
  frames.push_back(sample_row(3 << 20, 1, false));  // larger than a block and a segment
  frames.push_back(sample_row(0, 0));
  frames.push_back(sample_row(kBlockRawBytesMax - 64, 3));
  uint64_t bytes = 0;
  for (const auto& frame : frames) {
    ASSERT_TRUE(log.append(frame));
    bytes += frame.size();
  }
  ASSERT_TRUE(log.finish());
  EXPECT_EQ(log.frames(), frames.size());
  EXPECT_EQ(log.bytes(), bytes);
  EXPECT_GT(files(), 3U);
  EXPECT_EQ(log.disk_bytes(), file_bytes());
  EXPECT_EQ(space_->use().bytes, file_bytes());
  expect_frames(log, frames);
  expect_frames(log, frames);
}

TEST_F(SpillLogTest, CompressesWhatCanBe) {
  SpillLog log(*space_, "x");
  for (unsigned i = 0; i < 1000; ++i) ASSERT_TRUE(log.append(sample_row(200, i)));
  ASSERT_TRUE(log.finish());
  EXPECT_LT(log.disk_bytes() * 3, log.bytes());
}

TEST_F(SpillLogTest, AnEmptyLogHasNoFile) {
  SpillLog log(*space_, "x");
  ASSERT_TRUE(log.finish());
  EXPECT_EQ(files(), 0U);
  expect_frames(log, {});
}

TEST_F(SpillLogTest, ItsSegmentsGoWithIt) {
  {
    SpillLog log(*space_, "x/../y", 1000);
    for (unsigned i = 0; i < 50; ++i) {
      ASSERT_TRUE(log.append(sample_row(500, i, false)));
      ASSERT_TRUE(log.flush());
    }
    EXPECT_GT(files(), 20U);
    EXPECT_EQ(space_->use().segments, files());
    EXPECT_EQ(space_->use().logs, 1U);
  }
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(space_->use().bytes, 0U);
  EXPECT_EQ(space_->use().segments, 0U);
  EXPECT_EQ(space_->use().logs, 0U);
}

// As a lagging consumer uses it: appends and reads in turn, passed segments go, the end is taken from memory.
TEST_F(SpillLogTest, IsReadWhileItGrows) {
  SpillLog log(*space_, "queue", 3000);
  auto reader = log.read();
  Frames appended;
  std::vector<std::byte> got;
  for (unsigned i = 0; i < 2000; ++i) {
    appended.push_back(sample_row(i % 1500 == 7 ? 100'000 : i % 900, i, false));
    ASSERT_TRUE(log.append(appended.back()));
    if (i % 13 == 0) {
      ASSERT_TRUE(log.flush());
    }
    if (i % 29 == 0) {
      const auto more = drain(reader);
      ASSERT_TRUE(more) << more.error().message;
      got.insert(got.end(), more->begin(), more->end());
      log.drop_before(reader.segment());
      EXPECT_LE(files(), 1U);
    }
  }
  const auto more = drain(reader).value();
  got.insert(got.end(), more.begin(), more.end());
  const auto rest = log.take_buffered();
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_TRUE(got == joined(appended));
  EXPECT_FALSE(log.has_buffered());
}

TEST_F(SpillLogTest, AgesWithItsOldestSegment) {
  EXPECT_EQ(space_->use().age, 0us);
  SpillLog log(*space_, "x", 1);
  ASSERT_TRUE(log.append(sample_row(1, 1)));
  ASSERT_TRUE(log.flush());
  clock_.now += 5s;
  ASSERT_TRUE(log.append(sample_row(1, 2)));
  ASSERT_TRUE(log.flush());
  clock_.now += 2s;
  EXPECT_EQ(space_->use().age, 7s);
  log.drop_before(1);
  EXPECT_EQ(space_->use().age, 2s);
}

TEST_F(SpillLogTest, TheLimitStopsItAndMoreSpaceLetsItGoOn) {
  space_->set_limit(150'000);
  SpillLog log(*space_, "x", 100'000);
  Frames frames;
  for (unsigned i = 0; i < 300; ++i) frames.push_back(sample_row(i == 290 ? 300'000 : 1000, i, false));
  size_t failures = 0;
  for (const auto& frame : frames) {
    auto appended = log.append(frame);
    while (!appended) {
      ASSERT_EQ(appended.error().code, ErrorCode::spill_limit_reached);
      EXPECT_NE(appended.error().message.find("spill_limit_mb"), std::string::npos);
      EXPECT_TRUE(appended.error().message.ends_with(" MiB")) << appended.error().message;
      EXPECT_EQ(space_->use().bytes, file_bytes());
      ++failures;
      space_->set_limit(150'000 + failures * 50'000);
      appended = log.append(frame);
    }
  }
  EXPECT_GT(failures, 2U);
  space_->set_limit(1 << 30);
  ASSERT_TRUE(log.finish());
  expect_frames(log, frames);
}

TEST_F(SpillLogTest, LeavesSpaceForOthersOnTheDisk) {
  SpillSpace greedy(directory_, UINT64_MAX, clock_, uint64_t{1} << 60);  // no disk has so much left
  SpillLog log(greedy, "x");
  ASSERT_TRUE(log.append(sample_row(10, 1)));
  const auto flushed = log.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::disk_full);
  EXPECT_NE(flushed.error().message.find(directory_.string()), std::string::npos);
  EXPECT_EQ(files(), 0U);
}

// RLIMIT_FSIZE gives EFBIG, not ENOSPC, but the same partial writes: what matters here is that the log stays whole.
TEST_F(SpillLogTest, AWriteThatFailedHalfwayCanBeTriedAgain) {
  SpillLog log(*space_, "x");
  Frames frames;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 300'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  bool failed = false;
  for (unsigned i = 0; i < 1000 && !failed; ++i) {
    frames.push_back(sample_row(i % 2 == 0 ? 1000 : 140'000, i, false));
    failed = !log.append(frames.back()).has_value();
  }
  EXPECT_EQ(space_->use().bytes, file_bytes());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(std::signal(SIGXFSZ, old_handler));
  ASSERT_TRUE(failed);
  ASSERT_TRUE(log.append(frames.back()));
  ASSERT_TRUE(log.finish());
  expect_frames(log, frames);
}

TEST_F(SpillLogTest, NoticesThatSomebodyChangedItsFile) {
  SpillLog log(*space_, "x");
  for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(log.append(sample_row(i * 8, i, false)));
  ASSERT_TRUE(log.finish());
  const auto path = std::filesystem::directory_iterator(directory_)->path();
  const auto content = base::read_file(path).value();
  const auto read = [&] {
    auto reader = log.read();
    return drain(reader).has_value();
  };
  ASSERT_TRUE(read());
  for (size_t at = 0; at < content.size(); at += 3) {
    std::ofstream(path, std::ios::binary) << content.substr(0, at);
    ASSERT_FALSE(read()) << "cut to " << at;
  }
  std::filesystem::remove(path);
  ASSERT_FALSE(read());
}

TEST_F(SpillLogTest, ClearsLeftoversAndNothingElse) {
  std::ofstream(directory_ / "thalweg-spill-xid-7-1.000000") << "left by a dead process";
  std::ofstream(directory_ / "notes.txt") << "keep";
  EXPECT_EQ(space_->clear().value(), 1U);
  EXPECT_EQ(files(), 1U);
  SpillSpace deeper(directory_ / "new" / "deeper", 1, clock_);
  EXPECT_EQ(deeper.clear().value(), 0U);
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "new" / "deeper"));
}

TEST_F(SpillLogTest, NamesTheDirectoryThatIsMissing) {
  SpillSpace absent(directory_ / "absent", uint64_t{1} << 30, clock_, 0);
  SpillLog log(absent, "x");
  ASSERT_TRUE(log.append(sample_row(1, 1)));
  const auto flushed = log.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::file_error);
  EXPECT_NE(flushed.error().message.find("absent"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::spill
