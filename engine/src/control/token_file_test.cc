#include "control/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "control/state_directory.h"

namespace thalweg::control {
namespace {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thalweg-control-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FolderTest, ATokenIsMadeOnceForItsOwnerOnly) {
  auto made = load_or_create_token(folder_ / "token");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->size(), 64u);
  EXPECT_EQ(*load_or_create_token(folder_ / "token"), *made);
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ::chmod((folder_ / "token").c_str(), 0644);
  EXPECT_FALSE(load_or_create_token(folder_ / "token"));
}

TEST_F(FolderTest, AShortTokenIsRefused) {
  ASSERT_TRUE(base::write_file_atomically(folder_ / "token", "short\n", 0600));
  EXPECT_FALSE(load_or_create_token(folder_ / "token"));
}

TEST(Token, ComparesWholeTokens) {
  EXPECT_TRUE(same_token("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abcabc", "abd"}) EXPECT_FALSE(same_token(other, "abc")) << other;
  EXPECT_FALSE(same_token("", ""));
}

TEST_F(FolderTest, AStateDirectoryHasOneEngine) {
  {
    auto first = StateDirectory::open(folder_ / "state");
    ASSERT_TRUE(first) << first.error().message;
    auto second = StateDirectory::open(folder_ / "state");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, base::ErrorCode::state_directory_failed);
  }
  EXPECT_TRUE(StateDirectory::open(folder_ / "state"));
}

}  // namespace
}  // namespace thalweg::control
