#include "spill/spill_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "lcr/frame_samples.h"

namespace thalweg::spill {
namespace {

class SpillFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_spill_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  SpillFile make() const { return SpillFile::create(directory_, "stream01-42").value(); }

  std::filesystem::path directory_;
};

// A row whose one value has `bytes` bytes that follow from `seed`.
std::vector<std::byte> row(size_t bytes, unsigned seed) {
  std::string value(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(seed + i);
  const lcr::SampleColumns columns{{'b', value}};
  return lcr::make_sample_row(lcr::FrameKind::insert, lcr::kStreamed, 0, nullptr, &columns);
}

void expect_frames(const SpillFile& file, const std::vector<std::vector<std::byte>>& frames) {
  auto reader = file.read();
  ASSERT_TRUE(reader) << reader.error().message;
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto next = reader->next();
    ASSERT_TRUE(next) << next.error().message;
    ASSERT_TRUE(next->has_value()) << "only " << i << " frames";
    ASSERT_TRUE(std::ranges::equal((*next)->bytes(), frames[i])) << "frame " << i;
  }
  EXPECT_EQ(reader->next().value(), std::nullopt);
  EXPECT_EQ(reader->next().value(), std::nullopt);
}

TEST_F(SpillFileTest, GivesBackWhatWasAppendedAsOftenAsAsked) {
  std::vector<std::vector<std::byte>> frames;
  auto file = make();
  for (unsigned i = 0; i < 3000; ++i) frames.push_back(row(i % 700, i));  // about 1 MiB, over several buffers
  frames.push_back(row(3 << 20, 1));                                      // larger than a buffer
  frames.push_back(row(0, 0));
  frames.push_back(row((256 << 10) - 64, 3));
  uint64_t bytes = 0;
  for (const auto& frame : frames) {
    ASSERT_TRUE(file.append(frame));
    bytes += frame.size();
  }
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(file.frames(), frames.size());
  EXPECT_EQ(file.bytes(), bytes);
  expect_frames(file, frames);
  expect_frames(file, frames);
}

TEST_F(SpillFileTest, AnEmptyFileHasNoFrames) {
  auto file = make();
  ASSERT_TRUE(file.finish());
  expect_frames(file, {});
}

TEST_F(SpillFileTest, IsDeletedWithItsOwner) {
  {
    auto file = make();
    EXPECT_EQ(files(), 1U);
    auto moved = std::move(file);
    EXPECT_EQ(files(), 1U);
    ASSERT_TRUE(moved.append(row(10, 1)));
    ASSERT_TRUE(moved.finish());
    expect_frames(moved, {row(10, 1)});
    moved = make();  // the first one goes
    EXPECT_EQ(files(), 1U);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(SpillFileTest, SeesEveryDamage) {
  auto file = make();
  for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(file.append(row(i * 8, i)));
  ASSERT_TRUE(file.finish());
  const auto drain = [&]() -> base::Result<void> {
    THALWEG_ASSIGN(auto reader, file.read());
    while (true) {
      THALWEG_ASSIGN(const auto next, reader.next());
      if (!next) return {};
    }
  };
  ASSERT_TRUE(drain());
  const auto content = base::read_file(file.path()).value();
  for (size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(file.path(), std::ios::binary) << damaged;
    ASSERT_FALSE(drain()) << "byte " << at;
    std::ofstream(file.path(), std::ios::binary) << content.substr(0, at);
    ASSERT_FALSE(drain()) << "cut to " << at;
  }
}

// RLIMIT_FSIZE gives EFBIG, not ENOSPC, but the same partial writes: what matters here is that the file stays whole.
TEST_F(SpillFileTest, AFailedAppendCanBeTriedAgain) {
  auto file = make();
  std::vector<std::vector<std::byte>> frames;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 300'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  bool failed = false;
  for (unsigned i = 0; i < 1000 && !failed; ++i) {
    frames.push_back(row(i % 2 == 0 ? 1000 : 300'000, i));
    failed = !file.append(frames.back()).has_value();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(std::signal(SIGXFSZ, old_handler));
  ASSERT_TRUE(failed);
  ASSERT_TRUE(file.append(frames.back()));
  ASSERT_TRUE(file.finish());
  expect_frames(file, frames);
}

TEST_F(SpillFileTest, RemovesLeftoversAndNothingElse) {
  std::ofstream(directory_ / "thalweg-spill-old-abc123") << "left by a dead process";
  std::ofstream(directory_ / "notes.txt") << "keep";
  EXPECT_EQ(remove_leftovers(directory_).value(), 1U);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(remove_leftovers(directory_ / "new" / "deeper").value(), 0U);
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "new" / "deeper"));
}

TEST_F(SpillFileTest, NamesTheDirectoryThatIsMissing) {
  const auto file = SpillFile::create(directory_ / "absent", "x/../y");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::ErrorCode::file_error);
  EXPECT_NE(file.error().message.find("absent"), std::string::npos);
  EXPECT_EQ(SpillFile::create(directory_, "x/../y").value().path().parent_path(), directory_);
}

}  // namespace
}  // namespace thalweg::spill
