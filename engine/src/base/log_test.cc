#include "base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace thalweg::base {
namespace {

TEST(Log, LineIsOneJsonObject) {
  const std::string line = format_log_line(
      1'700'000'000'123'456, LogLevel::warning, "slot_created",
      {{"slot", "thalweg_\"x\"\n"}, {"count", 3}, {"big", ~uint64_t{0}}, {"ratio", 0.5}, {"again", true}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["event"], "slot_created");
  EXPECT_EQ(json["slot"], "thalweg_\"x\"\n");
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["big"], ~uint64_t{0});
  EXPECT_EQ(json["again"], true);
}

TEST(Log, SurvivesInvalidUtf8) {
  EXPECT_TRUE(nlohmann::json::accept(format_log_line(0, LogLevel::info, "e", {{"bad", "a\xff\xfe"}})));
}

TEST(Log, NeverShowsSecrets) {
  const std::string line = format_log_line(0, LogLevel::info, "e",
                                           {{"Password", "hunter2"},
                                            {"api_token", "hunter2"},
                                            {"conninfo", "hunter2"},
                                            {"message", "open host=a password=hunter2 user=b"}});
  EXPECT_EQ(line.find("hunter2"), std::string::npos);
  EXPECT_NE(line.find("user=b"), std::string::npos);
}

TEST(Log, MasksEveryFormOfPassword) {
  EXPECT_EQ(mask_passwords("a password=x y"), "a password=*** y");
  EXPECT_EQ(mask_passwords("PASSWORD='a \\' b' user=u"), "PASSWORD=*** user=u");
  EXPECT_EQ(mask_passwords("password=x&b password=y"), "password=***&b password=***");
  EXPECT_EQ(mask_passwords("password='open"), "password=***");
  EXPECT_EQ(mask_passwords("password=a\\"), "password=***");
  EXPECT_EQ(mask_passwords("password='a\\"), "password=***");
  EXPECT_EQ(mask_passwords("password="), "password=***");
  EXPECT_EQ(mask_passwords("nothing"), "nothing");
}

}  // namespace
}  // namespace thalweg::base
