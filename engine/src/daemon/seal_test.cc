#include "daemon/seal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/file.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
namespace fs = std::filesystem;

class SealTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thalweg-seal-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  Seal make(const std::string& name) { return Seal::open(folder_ / name, true).value(); }

  fs::path folder_;
  const std::string text_ = R"({"password": "a secret"})";
};

TEST_F(SealTest, OnlyTheSameKeyReadsIt) {
  const std::string sealed = make("key").close(text_).value();
  EXPECT_TRUE(Seal::is_sealed(sealed));
  EXPECT_EQ(sealed.find("secret"), std::string::npos);
  EXPECT_EQ(make("key").read(sealed).value(), text_);  // the next start
  EXPECT_NE(make("key").close(text_).value(), sealed);
  const auto foreign = make("another").read(sealed);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::state_directory_failed);
  EXPECT_NE(foreign.error().message.find("another"), std::string::npos);
}

TEST_F(SealTest, AnyChangedByteShows) {
  const Seal seal = make("key");
  const std::string sealed = seal.close(text_).value();
  for (size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(seal.read(changed)) << at;
    EXPECT_FALSE(seal.read(std::string_view(sealed).substr(0, at))) << at;
  }
}

TEST_F(SealTest, TheKeyIsTheEnginesAlone) {
  make("key");
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod((folder_ / "key").c_str(), 0644), 0);
  EXPECT_FALSE(Seal::open(folder_ / "key", true));
  ASSERT_EQ(::chmod((folder_ / "key").c_str(), 0440), 0);  // a credential of systemd
  EXPECT_TRUE(Seal::open(folder_ / "key", true));
  EXPECT_EQ(Seal::open(folder_ / "missing", false).error().code, ErrorCode::state_directory_failed);
  EXPECT_FALSE(fs::exists(folder_ / "missing"));
  for (const std::string& wrong : {std::string{}, std::string{"0123"}, std::string(64, 'g')}) {
    ASSERT_TRUE(base::write_file_atomically(folder_ / "wrong", wrong, 0600));
    EXPECT_FALSE(Seal::open(folder_ / "wrong", true)) << wrong;
  }
}

}  // namespace
}  // namespace thalweg::daemon
