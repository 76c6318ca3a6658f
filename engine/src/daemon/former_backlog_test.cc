#include "daemon/former_backlog.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "control/old_form.h"

namespace thalweg::daemon {
namespace {

namespace fs = std::filesystem;

class FormerBacklogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thalweg-former-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* id : {"warehouse", "default"}) fs::create_directories(folder_ / id / "backlog");
    for (const char* id : {"warehouse", "default2"}) {
      control::DestinationDefinition& destination = definition_.destinations.emplace_back();
      destination.id = id;
      destination.backlog = true;
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  control::StreamDefinition definition_;
};

TEST_F(FormerBacklogTest, GoesToTheDestinationThatHasTheReservedIdsPlace) {
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(move_former_backlog(folder_, definition_));
    EXPECT_TRUE(fs::exists(folder_ / "default2" / "backlog"));
    EXPECT_FALSE(fs::exists(folder_ / "default"));
  }
}

TEST_F(FormerBacklogTest, GoesToTheOneThatItWasNamedFor) {
  definition_.destinations.front().id = "new";
  EXPECT_EQ(move_former_backlog(folder_, definition_).error().code, base::ErrorCode::state_directory_failed);
  EXPECT_TRUE(fs::exists(folder_ / "default" / "backlog"));
  ASSERT_TRUE(name_former_backlog(folder_, "default2"));
  ASSERT_TRUE(move_former_backlog(folder_, definition_));
  EXPECT_TRUE(fs::exists(folder_ / "default2" / "backlog"));
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(FormerBacklogTest, StaysUntilTheNextDocumentHasNamedIt) {
  definition_.destinations.back().id = control::kOldFormId;
  ASSERT_TRUE(move_former_backlog(folder_, definition_));
  EXPECT_TRUE(fs::exists(folder_ / "default" / "backlog"));
}

}  // namespace
}  // namespace thalweg::daemon
