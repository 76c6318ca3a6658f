#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace thalweg::base {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "thalweg_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST_F(FileTest, ReplacesAWholeFileAndSetsItsMode) {
  const auto path = directory_ / "state.json";
  ASSERT_TRUE(write_file_atomically(path, "a longer first version", 0644));
  ASSERT_TRUE(write_file_atomically(path, "second", 0600));
  EXPECT_EQ(read_file(path).value(), "second");
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "state.json.new"));
}

TEST_F(FileTest, LeavesTheOldFileWhenTheNewOneCannotBeWritten) {
  const auto path = directory_ / "state.json";
  ASSERT_TRUE(write_file_atomically(path, "old", 0600));
  std::filesystem::create_directory(directory_ / "state.json.new");  // in the way
  const auto written = write_file_atomically(path, "new", 0600);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::file_error);
  EXPECT_NE(written.error().message.find("state.json"), std::string::npos);
  EXPECT_EQ(read_file(path).value(), "old");
}

TEST_F(FileTest, ReadsEmptyAndLargeFilesAndRefusesTooMuch) {
  const auto path = directory_ / "f";
  ASSERT_TRUE(write_file_atomically(path, "", 0600));
  EXPECT_EQ(read_file(path).value(), "");
  const std::string large(200'001, 'x');
  ASSERT_TRUE(write_file_atomically(path, large, 0600));
  EXPECT_EQ(read_file(path).value(), large);
  EXPECT_EQ(read_file(path, 200'000).error().code, ErrorCode::file_error);
  EXPECT_EQ(read_file(directory_ / "absent").error().code, ErrorCode::file_error);
}

TEST_F(FileTest, AFullDiskIsItsOwnError) {
  EXPECT_EQ(file_error(ENOSPC, "write x").code, ErrorCode::disk_full);
  auto full = File::open("/dev/full", O_WRONLY);
  ASSERT_TRUE(full);
  const std::byte byte{};
  EXPECT_EQ(full->write_all({&byte, 1}).error().code, ErrorCode::disk_full);
}

TEST_F(FileTest, MovesAndClosesItsDescriptor) {
  auto first = File::open(directory_ / "f", O_WRONLY | O_CREAT);
  ASSERT_TRUE(first);
  const int descriptor = first->descriptor();
  {
    const File second = std::move(*first);
    EXPECT_FALSE(first->is_open());
    EXPECT_EQ(second.descriptor(), descriptor);
  }
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

}  // namespace
}  // namespace thalweg::base
