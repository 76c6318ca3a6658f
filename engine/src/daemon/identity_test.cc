#include "daemon/identity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/file.h"

namespace thalweg::daemon {
namespace {

namespace fs = std::filesystem;

// A certificate authority made with the openssl command, as an operator would.
class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("thalweg-identity-" + std::to_string(::getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    make_authority("ca");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void shell(const std::string& command) {
    const std::string quiet = "cd '" + folder_.string() + "' && " + command + " >openssl.log 2>&1";
    ASSERT_EQ(std::system(quiet.c_str()), 0) << *base::read_file(folder_ / "openssl.log");
  }
  void make_authority(const std::string& name) {
    shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 10 -subj /CN=" + name +
          " -keyout " + name + ".key -out " + name + ".pem");
  }
  std::string sign(const std::string& request, const std::string& authority, const std::string& days = "5") {
    std::ofstream(folder_ / "request.pem") << request;
    shell("openssl x509 -req -in request.pem -copy_extensions copyall -days " + days + " -CA " + authority +
          ".pem -CAkey " + authority + ".key -out signed.pem");
    return *base::read_file(folder_ / "signed.pem");
  }
  std::string text(const std::string& file) { return *base::read_file(folder_ / file); }
  std::unique_ptr<Identity> open() { return std::move(*Identity::open(folder_ / "identity")); }

  base::SystemClock clock_;
  fs::path folder_;
};

TEST_F(IdentityTest, IsRequestedInstalledAndFoundAgain) {
  auto identity = open();
  EXPECT_FALSE(identity->view());
  auto request = identity->request("alpha");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(identity->view()) << "a request is no identity yet";
  auto installed = identity->install(sign(*request, "ca"), text("ca.pem"));
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_EQ(installed->name, "alpha");
  EXPECT_EQ(installed->fingerprint.size(), 64u);
  EXPECT_GT(installed->not_after.value, clock_.unix_now().value);

  auto later = open();
  ASSERT_TRUE(later->view());
  EXPECT_EQ(later->view()->fingerprint, installed->fingerprint);
  EXPECT_EQ(fs::status(later->key_file()).permissions() & fs::perms::mask, fs::perms(0600));
}

TEST_F(IdentityTest, IsRenewedForTheSameKeyAndReplacedForANewOne) {
  auto identity = open();
  auto first = identity->request("alpha");
  ASSERT_TRUE(identity->install(sign(*first, "ca"), text("ca.pem")));
  auto renewed = identity->install(sign(*first, "ca", "7"), text("ca.pem"));
  ASSERT_TRUE(renewed) << renewed.error().message;
  auto second = identity->request("beta");
  EXPECT_EQ(identity->view()->name, "alpha") << "until its certificate comes";
  ASSERT_TRUE(identity->install(sign(*second, "ca"), text("ca.pem")));
  EXPECT_EQ(identity->view()->name, "beta");
}

TEST_F(IdentityTest, RefusesWhatDoesNotFit) {
  auto identity = open();
  EXPECT_EQ(identity->request("Alpha Centauri").error().code, base::ErrorCode::invalid_request);
  EXPECT_EQ(identity->install(text("ca.pem"), text("ca.pem")).error().code, base::ErrorCode::identity_refused);

  auto stale = identity->request("alpha");
  auto current = identity->request("alpha");
  const auto refused = [&](const std::string& certificate, const std::string& ca) {
    auto installed = identity->install(certificate, ca);
    return !installed && installed.error().code == base::ErrorCode::identity_refused && !identity->view();
  };
  EXPECT_TRUE(refused("nonsense", text("ca.pem")));
  EXPECT_TRUE(refused(sign(*current, "ca"), "nonsense"));
  EXPECT_TRUE(refused(sign(*stale, "ca"), text("ca.pem"))) << "another key";
  make_authority("other");
  EXPECT_TRUE(refused(sign(*current, "other"), text("ca.pem"))) << "another authority";
  EXPECT_TRUE(refused(sign(*current, "ca", "-1"), text("ca.pem"))) << "expired";
  EXPECT_TRUE(identity->install(sign(*current, "ca"), text("ca.pem")));
}

TEST_F(IdentityTest, ADamagedOneIsAnErrorWithItsCure) {
  fs::create_directories(folder_ / "identity");
  std::ofstream(folder_ / "identity" / "identity.pem") << "damaged";
  auto opened = Identity::open(folder_ / "identity");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, base::ErrorCode::state_directory_failed);
  EXPECT_NE(opened.error().message.find("enrol"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::daemon
